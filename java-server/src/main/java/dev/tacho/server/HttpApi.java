package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineMetrics;
import dev.tacho.engine.EngineState;
import dev.tacho.metrics.prometheus.JvmMetrics;
import io.helidon.http.DirectHandler;
import io.helidon.http.HeaderNames;
import io.helidon.http.Headers;
import io.helidon.http.HttpException;
import io.helidon.http.Method;
import io.helidon.http.PathMatchers;
import io.helidon.http.ServerResponseHeaders;
import io.helidon.http.Status;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.DirectHandlers;
import io.helidon.webserver.http.FilterChain;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.RoutingRequest;
import io.helidon.webserver.http.RoutingResponse;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The OpenAI-compatible HTTP server of one engine. Every request has its own virtual thread. The engine belongs to the
 * caller and must be closed after the server.
 */
public final class HttpApi implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(HttpApi.class);
  private static final long MAX_BODY_BYTES = 32L << 20;
  private static final Set<String> POST_ONLY = Set.of("/v1/completions");
  private static final Set<String> GET_ONLY = Set.of("/v1/models", "/health", "/version", "/metrics");

  private final Engine engine;
  private final long created = Instant.now().getEpochSecond();
  private final String host;
  private final WebServer server;

  private HttpApi(Engine engine, String host, int port) {
    this.engine = engine;
    this.host = host;
    this.server =
        WebServer.builder()
            .host(host)
            .port(port)
            .maxPayloadSize(MAX_BODY_BYTES)
            .shutdownHook(false)
            .shutdownGracePeriod(Duration.ofSeconds(1))
            .addConnectionSelector(ClientConnection.selector())
            .directHandlers(HttpApi::answerOutsideRouting)
            .routing(this::route)
            .build();
  }

  /**
   * Starts to listen. The families of the JVM join those of the engine on {@code /metrics}.
   *
   * @param host address or name to listen on
   * @param port 0 for any free one
   * @throws ListenException if there is no such address or the port cannot be had
   */
  public static HttpApi start(Engine engine, String host, int port) {
    HttpApi api;
    try {
      api = new HttpApi(engine, host, port);
      JvmMetrics.registerIn(engine.metrics().registry());
      api.server.start();
    } catch (RuntimeException e) {
      for (Throwable cause = e; cause != null; cause = cause.getCause()) {
        if (cause instanceof BindException) {
          throw new ListenException(host, port, cause);
        }
        if (cause instanceof UnknownHostException) {
          throw new ListenException(host, cause);
        }
      }
      throw e;
    }
    if (!api.server.isRunning()) {
      throw new ListenException(host, port, new BindException("the listener did not start"));
    }
    return api;
  }

  /** The port that it listens on. */
  public int port() {
    return server.port();
  }

  /** Where it listens, e.g. {@code http://127.0.0.1:8000}. */
  public String url() {
    return "http://" + (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port();
  }

  /** Stops listening and ends the connections. */
  @Override
  public void close() {
    server.stop();
  }

  private void route(HttpRouting.Builder routing) {
    routing
        .addFilter(HttpApi::closeIfAsked)
        .post("/v1/completions", new CompletionsHandler(engine))
        .get("/v1/models", this::models)
        .get("/health", this::health)
        .get("/version", (_, response) -> sendJson(response, 200, Json.object().put("version", Version.current())))
        .get("/metrics", this::metrics)
        .get("/metrics/", this::metrics)
        .route(Method.HEAD, PathMatchers.any(), this::head)
        .any(HttpApi::unknown)
        .error(UncheckedIOException.class, HttpApi::clientGone)
        .error(HttpException.class, (_, response, e) -> send(response, fromHelidon(e)))
        .error(Throwable.class, HttpApi::failed);
  }

  /** Helidon leaves the closing to a client that has asked for {@code Connection: close}, which waits for it. */
  private static void closeIfAsked(FilterChain chain, RoutingRequest request, RoutingResponse response) {
    chain.proceed();
    if (asksToClose(request.headers()) || asksToClose(response.headers())) {
      throw new CloseConnectionException("the client or the handler asked for it");
    }
  }

  private static boolean asksToClose(Headers headers) {
    return headers.contains(HeaderNames.CONNECTION)
        && headers.get(HeaderNames.CONNECTION).allValues(true).stream()
            .anyMatch(token -> token.strip().equalsIgnoreCase("close"));
  }

  private void models(ServerRequest request, ServerResponse response) {
    ObjectNode body = Json.object();
    body.put("object", "list");
    ObjectNode model = body.putArray("data").addObject();
    model.put("id", engine.modelName());
    model.put("object", "model");
    model.put("created", created);
    model.put("owned_by", "tacho");
    model.put("root", String.valueOf(engine.config().model().getFileName()));
    model.putNull("parent");
    model.put("max_model_len", engine.maxModelLen());
    sendJson(response, 200, body);
  }

  private void health(ServerRequest request, ServerResponse response) {
    EngineState state = engine.state();
    sendJson(response, state.accepts() ? 200 : 503, Json.object().put("status", state.label()));
  }

  /** What GET would answer, without the body, which would be taken for the next answer. */
  private void head(ServerRequest request, ServerResponse response) {
    String path = request.path().path();
    if (POST_ONLY.contains(path)) {
      response.status(405).header(HeaderNames.ALLOW, Method.POST.text());
    } else if (!GET_ONLY.contains(path)) {
      response.status(404);
    } else if (path.equals("/health") && !engine.state().accepts()) {
      response.status(503);
    }
    response.send();
  }

  private void metrics(ServerRequest request, ServerResponse response) {
    String accept =
        request.headers().contains(HeaderNames.ACCEPT) ? request.headers().get(HeaderNames.ACCEPT).values() : "";
    EngineMetrics.Format format =
        accept.contains("application/openmetrics-text") ? EngineMetrics.Format.OPENMETRICS : EngineMetrics.Format.TEXT;
    response
        .header(HeaderNames.CONTENT_TYPE, format.contentType())
        .send(engine.metrics().exposition(format).getBytes(StandardCharsets.UTF_8));
  }

  private static void unknown(ServerRequest request, ServerResponse response) {
    String path = request.path().path();
    boolean known = POST_ONLY.contains(path) || GET_ONLY.contains(path);
    if (known) {
      String allowed = POST_ONLY.contains(path) ? Method.POST.text() : Method.GET.text();
      response.header(HeaderNames.ALLOW, allowed);
      String message = "method " + request.prologue().method() + " is not allowed on " + path + ", " + allowed + " is";
      send(response, ApiError.refused(405, message, null));
    } else {
      send(response, ApiError.refused(404, "there is nothing at " + path, null));
    }
  }

  /** What Helidon refuses before a handler sees it has the OpenAI shape too. */
  private static void answerOutsideRouting(DirectHandlers.Builder handlers) {
    for (DirectHandler.EventType type : DirectHandler.EventType.values()) {
      handlers.addHandler(type, HttpApi::malformed);
    }
  }

  private static DirectHandler.TransportResponse malformed(
      DirectHandler.TransportRequest request,
      DirectHandler.EventType type,
      Status status,
      ServerResponseHeaders headers,
      @Nullable String message) {
    return DirectHandler.TransportResponse.builder()
        .status(status)
        .keepAlive(false)
        .header(HeaderNames.CONTENT_TYPE, "application/json")
        .entity(Json.text(ApiError.refused(status.code(), inWords(message, status), null).toJson()))
        .build();
  }

  /** Helidon keeps some messages to itself. */
  private static String inWords(@Nullable String message, Status status) {
    return message == null || message.isBlank() ? status.reasonPhrase() : message;
  }

  private static ApiError fromHelidon(HttpException e) {
    int status = e.status().code();
    return status < 500
        ? ApiError.refused(status, inWords(e.getMessage(), e.status()), null)
        : ApiError.of(e);
  }

  private static void clientGone(ServerRequest request, ServerResponse response, UncheckedIOException e) {
    LOG.atDebug().setCause(e).log("the client of {} has gone away", request.path().path());
    throw new CloseConnectionException("the client has gone away", e);
  }

  private static void failed(ServerRequest request, ServerResponse response, Throwable fault) {
    ApiError error = ApiError.of(fault);
    if (error.status() == 500) {
      LOG.atError().setCause(fault).log("{} {} failed", request.prologue().method(), request.path().path());
    }
    if (!response.isSent()) {
      send(response, error);
    }
  }

  private static void send(ServerResponse response, ApiError error) {
    error.retryAfterSeconds()
        .ifPresent(seconds -> response.header(HeaderNames.RETRY_AFTER, Long.toString(seconds)));
    sendJson(response, error.status(), error.toJson());
  }

  private static void sendJson(ServerResponse response, int status, ObjectNode body) {
    response.status(status).header(HeaderNames.CONTENT_TYPE, "application/json").send(Json.bytes(body));
  }
}
