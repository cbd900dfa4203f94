package dev.tacho.engine.kernel.ffm;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SystemPagesTest {
  private static final int BYTES = 32 << 20;

  /** Bytes of mapped files in this process's memory. */
  private static long mappedBytes() throws IOException {
    String line =
        Files.readAllLines(Path.of("/proc/self/status")).stream()
            .filter(text -> text.startsWith("RssFile:"))
            .findFirst()
            .orElseThrow();
    return 1024 * Long.parseLong(line.replaceAll("\\D", ""));
  }

  @Test
  void pagesOfAMappedFileLeaveTheProcessAndComeBackWithTheirContents(@TempDir Path folder) throws IOException {
    byte[] content = new byte[BYTES];
    new Random(5).nextBytes(content);
    Path file = Files.write(folder.resolve("file"), content);
    try (FileChannel channel = FileChannel.open(file);
        Arena arena = Arena.ofConfined()) {
      MemorySegment mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, BYTES, arena);
      assertThat(mapped.toArray(JAVA_BYTE)).isEqualTo(content);
      long before = mappedBytes();
      // Not on a page's border: the first and the last page are shared with others and stay.
      SystemPages.release(mapped.asSlice(100, BYTES - 200));
      assertThat(before - mappedBytes()).isGreaterThan(BYTES * 3L / 4);
      assertThat(mapped.toArray(JAVA_BYTE)).isEqualTo(content);
    }
  }
}
