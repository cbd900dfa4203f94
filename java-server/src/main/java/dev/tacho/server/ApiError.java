package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.EngineClosedException;
import dev.tacho.engine.EngineDeadException;
import dev.tacho.engine.InvalidRequestException;
import dev.tacho.engine.OverloadedException;
import dev.tacho.engine.PromptTooLongException;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * An error as the OpenAI API shows it: an HTTP status and {@code {"error": {"message", "type", "param", "code"}}}.
 *
 * @param status the HTTP status
 * @param type the kind, e.g. {@code invalid_request_error}
 * @param message in words, with the value and the limit
 * @param parameter the request's parameter at fault, or null
 * @param code a word that programs can test for, or null
 * @param retryAfterSeconds when to try again, if that may help
 */
record ApiError(
    int status,
    String type,
    String message,
    @Nullable String parameter,
    @Nullable String code,
    OptionalLong retryAfterSeconds) {
  private static final String INVALID_REQUEST = "invalid_request_error";
  private static final String UNAVAILABLE = "Service Unavailable";

  /** A message shows values of the request, which may be megabytes. */
  private static final int MAX_MESSAGE_CHARS = 1000;

  /** Cuts the message. */
  ApiError {
    if (message.length() > MAX_MESSAGE_CHARS) {
      int cut = Character.isHighSurrogate(message.charAt(MAX_MESSAGE_CHARS - 1)) ? 1 : 0;
      message = message.substring(0, MAX_MESSAGE_CHARS - cut) + "...";
    }
  }

  /** Thrown where a request is found to be wrong. */
  static final class Thrown extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient ApiError error;

    Thrown(ApiError error) {
      super(error.message());
      this.error = error;
    }

    ApiError error() {
      return error;
    }
  }

  /** A bad request: 400. */
  static Thrown invalid(@Nullable String parameter, String message) {
    return new Thrown(new ApiError(400, INVALID_REQUEST, message, parameter, null, OptionalLong.empty()));
  }

  /** Some other refusal of the client's doing. */
  static ApiError refused(int status, String message, @Nullable String code) {
    return new ApiError(status, INVALID_REQUEST, message, null, code, OptionalLong.empty());
  }

  /** What the engine's exception means to a client. */
  static ApiError of(Throwable fault) {
    String message = String.valueOf(fault.getMessage());
    return switch (fault) {
      case Thrown thrown -> thrown.error();
      case PromptTooLongException _ ->
          new ApiError(400, INVALID_REQUEST, message, "prompt", "context_length_exceeded", OptionalLong.empty());
      case InvalidRequestException e ->
          new ApiError(400, INVALID_REQUEST, message, e.parameter(), null, OptionalLong.empty());
      case OverloadedException e ->
          new ApiError(
              503, UNAVAILABLE, message, null, null, OptionalLong.of(Math.max(1, e.retryAfter().toSeconds())));
      case EngineClosedException _ -> new ApiError(503, UNAVAILABLE, message, null, null, OptionalLong.of(1));
      case EngineDeadException _ -> new ApiError(503, UNAVAILABLE, message, null, null, OptionalLong.empty());
      default -> new ApiError(500, "internal_error", message, null, null, OptionalLong.empty());
    };
  }

  /** The JSON of the error. */
  ObjectNode toJson() {
    ObjectNode body = Json.object();
    ObjectNode error = body.putObject("error");
    error.put("message", message);
    error.put("type", type);
    error.put("param", parameter);
    error.put("code", code);
    return body;
  }
}
