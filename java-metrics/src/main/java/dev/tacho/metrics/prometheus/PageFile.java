package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.page.ProcessFile;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file of an engine's page. Its names say which engine and which families, as {@link FamiliesText}; its data are
 * the page and the adapters in use. Used by the page's writer alone.
 *
 * <pre>
 *  data + 0      the page, see {@link MetricsPage}
 *  after it      bytes of the adapters' names, long, -1 before the first snapshot
 *  + 8           their names joined by commas, UTF-8, {@value #ADAPTER_BYTES} bytes
 * </pre>
 */
final class PageFile {
  /** Room for the names of the adapters in use; more are cut. */
  static final int ADAPTER_BYTES = 4088;

  private static final Logger LOG = LoggerFactory.getLogger(PageFile.class);
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final long TIME_INTERVAL_NANOS = 1_000_000_000;

  private final ProcessFile file;
  private final MetricsPage page;
  private final MemorySegment adapters;
  private long toldNanos;

  private PageFile(ProcessFile file, MetricsPage page, MemorySegment adapters) {
    this.file = file;
    this.page = page;
    this.adapters = adapters;
  }

  /** Makes the file of an engine. */
  static PageFile create(Path directory, EngineFamilies families, PageLayout layout) {
    try {
      ProcessFile.Filled<MemorySegment> filled = ProcessFile.create(directory, ProcessFile.Kind.PAGE,
          FamiliesText.write(families), file -> {
            MemorySegment data = file.append(bytes(layout));
            adaptersOf(data, layout).set(LONG, 0, -1);
            new MetricsPage(data.asSlice(0, pageBytes(layout)), layout.cells()).beginUpdate();
            return data;
          });
      MemorySegment data = filled.content();
      return new PageFile(filled.file(), new MetricsPage(data.asSlice(0, pageBytes(layout)), layout.cells()),
          adaptersOf(data, layout));
    } catch (IOException e) {
      throw new UncheckedIOException("metrics directory " + directory + ": " + e.getMessage(), e);
    }
  }

  static long pageBytes(PageLayout layout) {
    return MetricsPage.HEADER_BYTES + (long) layout.cells() * Long.BYTES;
  }

  static long bytes(PageLayout layout) {
    return (pageBytes(layout) + Long.BYTES + ADAPTER_BYTES + 63) / 64 * 64;
  }

  static MemorySegment adaptersOf(MemorySegment data, PageLayout layout) {
    return data.asSlice(pageBytes(layout), Long.BYTES + ADAPTER_BYTES);
  }

  /** The adapters' names that such memory holds, or null. */
  static @Nullable String readAdapters(MemorySegment adapters) {
    long bytes = adapters.get(LONG, 0);
    return bytes < 0 || bytes > ADAPTER_BYTES ? null
        : new String(adapters.asSlice(Long.BYTES, bytes).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
  }

  MetricsPage page() {
    return page;
  }

  /** Says which adapters are in use; during an update of the page. */
  void adapters(String joined) {
    byte[] text = joined.getBytes(StandardCharsets.UTF_8);
    if (text.length > ADAPTER_BYTES) {
      int end = ADAPTER_BYTES;
      while (end > 0 && (text[end] & 0xC0) == 0x80) {
        end--;
      }
      text = Arrays.copyOf(text, end);
    }
    adapters.set(LONG, 0, text.length);
    MemorySegment.copy(text, 0, adapters, ValueLayout.JAVA_BYTE, Long.BYTES, text.length);
  }

  /** Tells the time if a second has passed. */
  void tellTime(long nanos) {
    if (toldNanos == 0 || nanos - toldNanos >= TIME_INTERVAL_NANOS) {
      toldNanos = nanos;
      file.tellTime();
    }
  }

  /** Takes the file away. */
  void delete() {
    try {
      file.delete();
    } catch (IOException e) {
      LOG.warn("{} could not be deleted", file, e);
    }
  }
}
