package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.Await;
import io.helidon.common.buffers.BufferData;
import io.helidon.common.buffers.DataWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class WriteWatchTest {
  private static final BufferData PIECE = BufferData.create(new byte[1]);

  /** What a writer of Helidon does, with one kind of write. */
  private interface OneWrite extends DataWriter {
    @Override
    default void write(BufferData... buffers) {
      write(BufferData.create(buffers));
    }

    @Override
    default void writeNow(BufferData... buffers) {
      write(BufferData.create(buffers));
    }

    @Override
    default void writeNow(BufferData buffer) {
      write(buffer);
    }
  }

  private static OneWrite into(OutputStream out) {
    byte[] piece = new byte[1 << 16];
    return buffer -> {
      try {
        out.write(piece);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    };
  }

  @Test
  @SuppressWarnings("try") // what the watch closes is closed before its time
  void aWriteToAClientThatNeverReadsFailsAfterTheLimit() throws IOException {
    AtomicInteger disconnects = new AtomicInteger();
    try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new Socket(listener.getInetAddress(), listener.getLocalPort());
        Socket server = listener.accept();
        WriteWatch watch = new WriteWatch(Duration.ofMillis(200))) {
      WriteWatch.Writer writer =
          watch.over(
              into(server.getOutputStream()),
              () -> {
                disconnects.incrementAndGet();
                try {
                  server.close();
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
      assertThatThrownBy(
              () -> {
                // Ends when the sockets' buffers are full and the watch has closed this end.
                while (client.isConnected()) {
                  writer.writeNow(PIECE);
                }
              })
          .isInstanceOf(UncheckedIOException.class);
      assertThat(disconnects).hasValue(1);
    }
  }

  /** Time goes by between the writes alone, far more than the limit together. */
  @Test
  void writesThatComeBackAreLeftAloneHoweverLongTheAnswerTakes() {
    Duration limit = Duration.ofMillis(1);
    AtomicInteger disconnects = new AtomicInteger();
    AtomicInteger looks = new AtomicInteger();
    AtomicLong clock = new AtomicLong();
    Thread writing = Thread.currentThread();
    LongSupplier counted =
        () -> {
          if (!Thread.currentThread().equals(writing)) {
            looks.incrementAndGet();
          }
          return clock.get();
        };
    try (WriteWatch watch = new WriteWatch(limit, counted)) {
      WriteWatch.Writer writer = watch.over((OneWrite) buffer -> {}, disconnects::incrementAndGet);
      Await.until(
          "the watch has looked a hundred times",
          () -> {
            writer.write(PIECE, PIECE);
            writer.write(PIECE);
            writer.writeNow(PIECE, PIECE);
            writer.flush();
            clock.addAndGet(limit.toNanos());
            return looks.get() > 100;
          });
    }
    assertThat(disconnects).hasValue(0);
  }

  /** The watch's thread outlives a connection that cannot be closed. */
  @Test
  void aConnectionThatCannotBeClosedLeavesTheOthersWatched() throws InterruptedException {
    CountDownLatch over = new CountDownLatch(1);
    OneWrite stuck = buffer -> Await.open("the writes are let go", over);
    CountDownLatch tried = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    try (WriteWatch watch = new WriteWatch(Duration.ofMillis(20))) {
      WriteWatch.Writer first =
          watch.over(
              stuck,
              () -> {
                tried.countDown();
                throw new IllegalStateException("cannot be closed");
              });
      Thread one = Thread.startVirtualThread(() -> first.write(PIECE));
      Await.open("the first is tried", tried);
      WriteWatch.Writer second = watch.over(stuck, closed::countDown);
      Thread two = Thread.startVirtualThread(() -> second.write(PIECE));
      Await.open("the second is closed", closed);
      over.countDown();
      Await.ended(one);
      Await.ended(two);
    } finally {
      over.countDown();
    }
  }
}
