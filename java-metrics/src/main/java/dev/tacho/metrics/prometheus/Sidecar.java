package dev.tacho.metrics.prometheus;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves {@code GET /metrics} for the engine processes of this machine that publish in a directory, also while one of
 * them is too busy to answer or has been killed. {@link #main} is the command {@code tacho-metrics}.
 */
public final class Sidecar implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Sidecar.class);
  private static final String USAGE = """
      usage: tacho-metrics [--host ADDRESS] [--port PORT] DIRECTORY
      Serves GET /metrics for the engines whose processes publish in DIRECTORY, which must exist.
        --host ADDRESS  where to listen, 127.0.0.1 unless told otherwise
        --port PORT     on which port, 9464 unless told otherwise; 0 for any free one""";
  private static final int DEFAULT_PORT = 9464;
  private static final int EXIT_USAGE = 2;

  private final PageDirectory pages;
  private final HttpServer server;
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();

  private Sidecar(PageDirectory pages, HttpServer server) {
    this.pages = pages;
    this.server = server;
  }

  /**
   * Begins to serve.
   *
   * @param directory where the processes publish; it may come into being later
   * @param host address to listen on
   * @param port port, 0 for any free one
   * @throws IOException if it cannot listen there
   */
  public static Sidecar start(Path directory, String host, int port) throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName(host), port), 0);
    Sidecar sidecar = new Sidecar(new PageDirectory(directory), server);
    server.createContext("/", exchange -> answer(exchange, 404, null, text("only /metrics is here\n")));
    server.createContext("/metrics", sidecar::metrics);
    server.setExecutor(sidecar.threads);
    server.start();
    return sidecar;
  }

  /** The port that it listens on. */
  public int port() {
    return server.getAddress().getPort();
  }

  @Override
  public void close() {
    server.stop(0);
    threads.close();
  }

  private void metrics(HttpExchange exchange) throws IOException {
    if (!exchange.getRequestMethod().equals("GET")) {
      answer(exchange, 405, null, text("only GET is allowed\n"));
      return;
    }
    String accept = exchange.getRequestHeaders().getFirst("Accept");
    ExpositionFormat format = ExpositionFormat.ofAccept(accept == null ? "" : accept);
    try {
      answer(exchange, 200, format.contentType(), pages.exposition(format));
    } catch (IOException | RuntimeException e) {
      LOG.warn("A scrape failed", e);
      answer(exchange, 500, null, text("the pages could not be read: " + e.getMessage() + "\n"));
    }
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static void answer(HttpExchange exchange, int status, @Nullable String contentType, byte[] body)
      throws IOException {
    try (exchange) {
      exchange.getResponseHeaders().set("Content-Type", contentType == null ? "text/plain" : contentType);
      exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
      exchange.getResponseBody().write(body);
    }
  }

  /** The command. Ends with 2 if it was called wrongly, 1 if it cannot listen. */
  public static void main(String[] args) {
    String host = "127.0.0.1";
    int port = DEFAULT_PORT;
    Path directory = null;
    for (int i = 0; i < args.length; i++) {
      boolean hasValue = i + 1 < args.length;
      switch (args[i]) {
        case "--help", "-h" -> {
          System.out.println(USAGE);
          return;
        }
        case "--host" -> host = hasValue ? args[++i] : fail("--host needs an address");
        case "--port" -> port = port(hasValue ? args[++i] : fail("--port needs a number"));
        default -> {
          if (args[i].startsWith("-") || directory != null) {
            fail("unknown argument " + args[i]);
          }
          directory = Path.of(args[i]);
        }
      }
    }
    if (directory == null) {
      fail("DIRECTORY is missing");
      return;
    }
    if (!Files.isDirectory(directory)) {
      // Most likely a slip of the pen; who starts this first can make the directory first.
      fail("DIRECTORY " + directory + (Files.exists(directory) ? ": is no directory"
          : ": there is no such directory; make it if the engines are yet to start"));
    }
    try {
      Sidecar sidecar = start(directory, host, port);
      System.out.println("serving http://" + host + ":" + sidecar.port() + "/metrics for " + directory);
    } catch (IOException e) {
      System.err.println("cannot listen on --host " + host + " --port " + port + ": " + e.getMessage());
      System.exit(1);
    }
  }

  private static int port(String text) {
    try {
      int port = Integer.parseInt(text);
      if (port >= 0 && port <= 0xFFFF) {
        return port;
      }
    } catch (NumberFormatException e) {
      // Told below.
    }
    fail("--port " + text + ": must be a number in [0, 65535]");
    return 0;
  }

  private static String fail(String why) {
    System.err.println(why);
    System.err.println(USAGE);
    System.exit(EXIT_USAGE);
    return "";
  }
}
