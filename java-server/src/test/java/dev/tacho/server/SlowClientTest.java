package dev.tacho.server;

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
    ByteBuffer requests =
        ByteBuffer.wrap(
            ("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n").repeat(50).getBytes(StandardCharsets.US_ASCII));
    try (SocketChannel client = SocketChannel.open()) {
      client.setOption(StandardSocketOptions.SO_RCVBUF, 4096);
      client.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), api.port()));
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
