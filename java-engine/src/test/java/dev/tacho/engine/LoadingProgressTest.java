package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class LoadingProgressTest {
  private static final long GIB = 1L << 30;

  @Test
  void aLineASecondWithPercentAndBytesAndEachTensorIsLetGoOf() {
    AtomicLong nanos = new AtomicLong(Long.MAX_VALUE - 5);
    List<String> lines = new ArrayList<>();
    List<MemorySegment> released = new ArrayList<>();
    LoadingProgress progress = new LoadingProgress(nanos::get, lines::add, released::add);
    MemorySegment first = MemorySegment.ofArray(new byte[1]);
    MemorySegment second = MemorySegment.ofArray(new byte[2]);
    MemorySegment third = MemorySegment.ofArray(new byte[3]);
    nanos.addAndGet(999_999_999);
    progress.loaded(GIB, 4 * GIB, first);
    assertThat(lines).isEmpty();
    nanos.addAndGet(1);
    progress.loaded(GIB + GIB / 2, 4 * GIB, second);
    progress.loaded(4 * GIB, 4 * GIB, third);
    assertThat(lines).containsExactly("loading weights: 37 %, 1.5 GiB of 4.0 GiB");
    assertThat(released).containsExactly(first, second, third);
  }
}
