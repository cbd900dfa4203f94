package dev.tacho.server;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** JSON of requests and answers: strict in what it reads. */
final class Json {
  private static final ObjectMapper MAPPER =
      JsonMapper.builder()
          .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();

  private Json() {}

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  /** Reads one value. */
  static JsonNode read(String text) throws JsonProcessingException {
    return MAPPER.readTree(text);
  }

  /** Reads one JSON object; anything else is a bad request. */
  static ObjectNode readObject(byte[] body) {
    JsonNode node;
    try {
      node = MAPPER.readTree(body);
    } catch (JsonProcessingException e) {
      throw ApiError.invalid(null, "the body is not valid JSON: " + e.getOriginalMessage());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    if (!(node instanceof ObjectNode object)) {
      throw ApiError.invalid(null, "the body must be a JSON object, is " + node.getNodeType());
    }
    return object;
  }

  /** Reads a file with one JSON object; anything else is a failure of the command. */
  static ObjectNode readObject(Path file) {
    try {
      if (MAPPER.readTree(Files.readAllBytes(file)) instanceof ObjectNode object) {
        return object;
      }
    } catch (JsonProcessingException e) {
      throw new CommandFailedException(file + " is not valid JSON: " + e.getOriginalMessage());
    } catch (IOException e) {
      throw new CommandFailedException(file + " cannot be read: " + e);
    }
    throw new CommandFailedException(file + " holds no JSON object");
  }

  static byte[] bytes(JsonNode node) {
    try {
      return MAPPER.writeValueAsBytes(node);
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String text(JsonNode node) {
    return node.toString();
  }

  static String pretty(JsonNode node) {
    return node.toPrettyString();
  }
}
