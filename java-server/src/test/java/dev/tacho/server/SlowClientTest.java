package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import dev.tacho.metrics.Await;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;

/** Clients that ask and never read: the server gives them up, whatever it was that they asked for. */
class SlowClientTest {
  private static Engine engine;
  private static HttpApi api;

  @BeforeAll
  static void start() {
    engine = Engine.open(EngineConfig.builder().model(BundledModel.FILE).maxModelLen(512).build());
    api = HttpApi.start(engine, "127.0.0.1", 0, Duration.ofMillis(300));
  }

  @AfterAll
  static void stop() {
    api.close();
    engine.close();
  }

  @ParameterizedTest
  @ValueSource(strings = {"/metrics", "/v1/models", "/nothing"})
  void whoeverReadsNothingIsDisconnected(String path) throws IOException {
    sendUntilClosed("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n", api.port());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
      })
  void anAnswerThatNobodyReadsLeavesNoWarningInTheLog(String request) throws IOException {
    Logger helidon = (Logger) LoggerFactory.getLogger("io.helidon");
    ListAppender<ILoggingEvent> log = new ListAppender<>();
    log.start();
    helidon.addAppender(log);
    try (Engine own = Engine.open(EngineConfig.builder().model(BundledModel.FILE).maxModelLen(64).build());
        HttpApi server = HttpApi.start(own, "127.0.0.1", 0, Duration.ofMillis(300))) {
      sendUntilClosed(request, server.port());
    } finally {
      helidon.detachAppender(log);
    }
    assertThat(log.list).filteredOn(event -> event.getLevel().isGreaterOrEqual(Level.WARN)).isEmpty();
  }

  private static void sendUntilClosed(String request, int port) throws IOException {
    ByteBuffer requests = ByteBuffer.wrap(request.repeat(50).getBytes(StandardCharsets.US_ASCII));
    try (SocketChannel client = SocketChannel.open()) {
      client.setOption(StandardSocketOptions.SO_RCVBUF, 4096);
      client.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
      client.configureBlocking(false);
      Await.until("the server has closed the connection", () -> isClosed(client, requests));
    }
  }

  private static boolean isClosed(SocketChannel client, ByteBuffer requests) {
    try {
      client.write(requests);
      if (!requests.hasRemaining()) {
        requests.rewind();
      }
      return false;
    } catch (IOException e) {
      return true;
    }
  }
}
