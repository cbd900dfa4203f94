package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineException;
import dev.tacho.engine.EngineMetrics;
import dev.tacho.engine.EngineState;
import dev.tacho.metrics.prometheus.HttpMetrics;
import dev.tacho.metrics.prometheus.JvmMetrics;
import io.helidon.http.DirectHandler;
import io.helidon.http.Header;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
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
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.RoutingRequest;
import io.helidon.webserver.http.RoutingResponse;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.UnknownHostException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
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
  private static final Duration WRITE_LIMIT = Duration.ofSeconds(30);

  /** The handler in metrics of what has no route, so that clients cannot make series. */
  private static final String NO_ROUTE = "none";

  /** Methods that are told apart in metrics. */
  private static final Set<String> METHODS =
      Set.of("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH");

  /** Content-Length, as far as a long can hold it. */
  private static final Pattern LENGTH = Pattern.compile("\\d{1,18}");

  private final Engine engine;
  private final HttpMetrics metrics;
  private final WriteWatch writes;

  /** The method of each path that is served. */
  private final Map<String, Method> routes = new HashMap<>();
  private final long created = Instant.now().getEpochSecond();
  private final String host;
  private final WebServer server;

  private HttpApi(Engine engine, String host, int port, Duration writeLimit) {
    this.engine = engine;
    metrics = HttpMetrics.in(engine.metrics().registry());
    writes = new WriteWatch(writeLimit);
    this.host = host;
    this.server =
        WebServer.builder()
            .host(host)
            .port(port)
            .maxPayloadSize(MAX_BODY_BYTES)
            .shutdownHook(false)
            .shutdownGracePeriod(Duration.ofSeconds(1))
            .addConnectionSelector(ClientConnection.selector(writes))
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
    return start(engine, host, port, WRITE_LIMIT);
  }

  /** The same with another limit for one write to a client. */
  static HttpApi start(Engine engine, String host, int port, Duration writeLimit) {
    @Nullable HttpApi api = null;
    try {
      api = new HttpApi(engine, host, port, writeLimit);
      JvmMetrics.registerIn(engine.metrics().registry());
      api.server.start();
    } catch (RuntimeException e) {
      if (api != null) {
        api.writes.close();
      }
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
      api.writes.close();
      throw new ListenException(host, port, new BindException("the listener did not start"));
    }
    return api;
  }

  /**
   * Says whether {@link #start} could listen there now: worth asking before a model is loaded.
   *
   * @throws ListenException as start does
   */
  static void checkAddress(String host, int port) {
    try (ServerSocket probe = new ServerSocket()) {
      InetSocketAddress address = new InetSocketAddress(host, port);
      if (address.isUnresolved()) {
        throw new ListenException(host, new UnknownHostException(host));
      }
      probe.bind(address);
    } catch (IOException e) {
      throw new ListenException(host, port, e);
    }
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
    writes.close();
  }

  private void route(HttpRouting.Builder routing) {
    routing.addFilter(this::count).addFilter(HttpApi::closeIfAsked).addFilter(HttpApi::checkBodyEnd);
    CompletionsHandler completions = new CompletionsHandler(engine);
    serve(routing, Method.POST, "/v1/completions", completions);
    serve(routing, Method.GET, "/v1/models", this::models);
    serve(routing, Method.GET, "/health", this::health);
    serve(
        routing,
        Method.GET,
        "/version",
        (_, response) -> sendJson(response, 200, Json.object().put("version", Version.current())));
    serve(routing, Method.GET, "/metrics", this::metrics);
    if (engine.config().enableSleepMode()) {
      SleepRoutes sleep = new SleepRoutes(engine);
      serve(routing, Method.POST, SleepRoutes.SLEEP, sleep::sleep);
      serve(routing, Method.POST, SleepRoutes.WAKE_UP, sleep::wake);
      serve(routing, Method.GET, SleepRoutes.IS_SLEEPING, sleep::isSleeping);
    }
    routing
        .get("/metrics/", answering(this::metrics))
        .route(Method.HEAD, PathMatchers.any(), answering(this::head))
        .any(answering(this::unknown))
        .error(HttpException.class, (_, response, e) -> send(response, fromHelidon(e)))
        .error(Throwable.class, HttpApi::failed);
  }

  private void serve(HttpRouting.Builder routing, Method method, String path, Handler handler) {
    routes.put(path, method);
    routing.route(method, PathMatchers.exact(path), answering(handler));
  }

  /**
   * Sends refusals, and ends the connection of a client that has gone away, itself: where Helidon's error handlers
   * cannot send, it warns with a stack trace, and any client could fill the log.
   */
  private static Handler answering(Handler handler) {
    return (request, response) -> {
      try {
        try {
          handler.handle(request, response);
        } catch (ApiError.Thrown | EngineException e) {
          if (response.isSent()) {
            throw e;
          }
          send(response, ApiError.of(e));
        }
      } catch (UncheckedIOException e) {
        LOG.atDebug().setCause(e).log("the client of {} has gone away", request.path().path());
        throw new CloseConnectionException("the client has gone away", e);
      }
    };
  }

  /** Counts each request when it has been answered, or its client has gone. */
  private void count(FilterChain chain, RoutingRequest request, RoutingResponse response) {
    long start = System.nanoTime();
    try {
      chain.proceed();
    } finally {
      String path = request.path().path();
      String handler = path.equals("/metrics/") ? "/metrics" : routes.containsKey(path) ? path : NO_ROUTE;
      String method = request.prologue().method().text();
      metrics.answered(
          METHODS.contains(method) ? method : "OTHER",
          handler,
          response.status().code(),
          System.nanoTime() - start,
          length(request.headers()),
          length(response.headers()));
    }
  }

  private static long length(Headers headers) {
    if (headers.contains(HeaderNames.CONTENT_LENGTH)) {
      String text = headers.get(HeaderNames.CONTENT_LENGTH).get();
      if (LENGTH.matcher(text).matches()) {
        return Long.parseLong(text);
      }
    }
    return 0;
  }

  /** What is behind a body whose end nobody knows would be taken for a next request, so the connection is closed. */
  private static void checkBodyEnd(FilterChain chain, RoutingRequest request, RoutingResponse response) {
    ApiError error = faultOfBodyEnd(request.headers());
    if (error != null) {
      response.header(HeaderValues.CONNECTION_CLOSE).status(error.status());
      response.header(HeaderNames.CONTENT_TYPE, "application/json").send(Json.bytes(error.toJson()));
      throw new CloseConnectionException("nobody knows where its body ends");
    }
    chain.proceed();
    if (request.headers().contains(HeaderNames.EXPECT) && !request.content().consumed()) {
      throw new CloseConnectionException("a client that has not been told to continue may send its body or not");
    }
  }

  /** What is wrong with the headers that tell a body's end; null if nothing is. */
  private static @Nullable ApiError faultOfBodyEnd(Headers headers) {
    boolean coded = headers.contains(HeaderNames.TRANSFER_ENCODING);
    if (coded && !headers.contains(HeaderValues.TRANSFER_ENCODING_CHUNKED)) {
      String codings = headers.get(HeaderNames.TRANSFER_ENCODING).values();
      return ApiError.refused(501, "Transfer-Encoding: only 'chunked' is understood, is '" + codings + "'", null);
    }
    if (!headers.contains(HeaderNames.CONTENT_LENGTH)) {
      return null;
    }
    Header length = headers.get(HeaderNames.CONTENT_LENGTH);
    if (coded) {
      return ApiError.refused(400, "Content-Length: must not stand beside Transfer-Encoding", null);
    }
    if (!LENGTH.matcher(length.get()).matches()) {
      return ApiError.refused(400, "Content-Length: must be a number of bytes, is '" + length.get() + "'", null);
    }
    if (!length.allValues().stream().allMatch(length.get()::equals)) {
      return ApiError.refused(400, "Content-Length: must be one number, is '" + length.values() + "'", null);
    }
    return null;
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
    Method method = routes.get(path);
    if (method == null) {
      response.status(404);
    } else if (!method.equals(Method.GET)) {
      response.status(405).header(HeaderNames.ALLOW, method.text());
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
    response.header(HeaderNames.CONTENT_TYPE, format.contentType());
    try (OutputStream out = response.outputStream()) {
      engine.metrics().writeTo(format, out);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void unknown(ServerRequest request, ServerResponse response) {
    String path = request.path().path();
    Method allowed = routes.get(path);
    if (allowed != null) {
      response.header(HeaderNames.ALLOW, allowed.text());
      String message =
          "method " + request.prologue().method() + " is not allowed on " + path + ", " + allowed.text() + " is";
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

  static void sendJson(ServerResponse response, int status, ObjectNode body) {
    response.status(status).header(HeaderNames.CONTENT_TYPE, "application/json").send(Json.bytes(body));
  }
}
