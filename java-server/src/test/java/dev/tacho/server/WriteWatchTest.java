package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class WriteWatchTest {
  @Test
  @SuppressWarnings("try") // what the watch closes is closed before its time
  void aWriteToAClientThatNeverReadsFailsAfterTheLimit() throws IOException {
    AtomicInteger disconnects = new AtomicInteger();
    try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new Socket(listener.getInetAddress(), listener.getLocalPort());
        Socket server = listener.accept();
        WriteWatch watch = new WriteWatch(Duration.ofMillis(200));
        WriteWatch.Answer answer =
            watch.answer(
                () -> {
                  disconnects.incrementAndGet();
                  try {
                    server.close();
                  } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                  }
                })) {
      byte[] piece = new byte[1 << 16];
      answer.begin();
      assertThatThrownBy(
              () -> {
                // Ends when the sockets' buffers are full and the watch has closed this end.
                while (client.isConnected()) {
                  server.getOutputStream().write(piece);
                }
              })
          .isInstanceOf(IOException.class);
      assertThat(disconnects).hasValue(1);
    }
  }

  @Test
  void writesThatComeBackAreLeftAloneHoweverLongTheAnswerTakes() throws InterruptedException {
    AtomicInteger disconnects = new AtomicInteger();
    try (WriteWatch watch = new WriteWatch(Duration.ofMillis(20));
        WriteWatch.Answer answer = watch.answer(disconnects::incrementAndGet);
        WriteWatch.Answer other = watch.answer(() -> {})) {
      long end = System.nanoTime() + 200_000_000;
      while (System.nanoTime() < end) {
        answer.begin();
        answer.end();
        other.begin();
        other.end();
        Thread.onSpinWait();
      }
    }
    assertThat(disconnects).hasValue(0);
  }
}
