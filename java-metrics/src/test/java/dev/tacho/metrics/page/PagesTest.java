package dev.tacho.metrics.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.Await;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class PagesTest {
  @Test
  void manyThreadsAndNativeCodeAddToACell() throws InterruptedException {
    CounterPage page = new CounterPage(1);
    int extra = page.firstExtraCell();
    List<Thread> threads = new ArrayList<>();
    for (int t = 0; t < 4; t++) {
      threads.add(Thread.ofPlatform().start(() -> {
        for (int i = 0; i < 100_000; i++) {
          page.add(EngineCounter.REJECTED_REQUESTS, 1);
          page.add(extra, 2);
        }
      }));
    }
    for (Thread thread : threads) {
      Await.ended(thread);
    }
    assertThat(page.get(EngineCounter.REJECTED_REQUESTS)).isEqualTo(400_000);
    assertThat(page.get(extra)).isEqualTo(800_000);
    MemorySegment cell = page.cell(extra);
    cell.set(ValueLayout.JAVA_LONG, 0, 7);
    assertThat(page.get(extra)).isEqualTo(7);
    assertThat(page.cell(1).address() - page.cell(0).address()).isEqualTo(CounterPage.CELL_BYTES);
    assertThat(page.cell(0).address() % CounterPage.CELL_BYTES).isZero();
  }

  @Test
  void counterCellsAreStable() {
    String ids = "";
    for (EngineCounter counter : EngineCounter.values()) {
      assertThat(counter.id()).isEqualTo(counter.ordinal());
      ids += counter + " ";
    }
    assertThat(ids).isEqualTo("ACCEPTED FINISHED_STOP FINISHED_LENGTH FINISHED_ABORT FINISHED_ERROR "
        + "FINISHED_REPETITION PROMPT_TOKENS GENERATION_TOKENS PREEMPTIONS REJECTED_REQUESTS REJECTED_TOKENS "
        + "LIFECYCLE BUBBLE_NANOS ");
    CounterPage page = new CounterPage();
    page.addAsOnlyWriter(EngineCounter.GENERATION_TOKENS, 5);
    page.addAsOnlyWriter(EngineCounter.GENERATION_TOKENS, 6);
    assertThat(page.get(EngineCounter.GENERATION_TOKENS)).isEqualTo(11);
    assertThatThrownBy(() -> page.get(page.cells())).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> new CounterPage(Arena.ofAuto().allocate(64, 64))).hasMessageContaining("64 bytes");
  }

  @Test
  void aMetricsPageLiesAsDrawn() {
    MetricsPage page = new MetricsPage(3);
    page.set(0, 1.5);
    page.increment(1);
    page.increment(1);
    page.add(2, 2L);
    page.add(2, 0.25);
    MemorySegment memory = page.memory();
    assertThat(memory.asSlice(0, 8).toArray(ValueLayout.JAVA_BYTE))
        .isEqualTo("TACHOPG1".getBytes(StandardCharsets.US_ASCII));
    assertThat(memory.get(ValueLayout.JAVA_LONG, 8)).isEqualTo(3);
    assertThat(memory.get(ValueLayout.JAVA_DOUBLE, 64)).isEqualTo(1.5);
    assertThat(memory.get(ValueLayout.JAVA_LONG, 72)).isEqualTo(2);
    assertThat(memory.get(ValueLayout.JAVA_DOUBLE, 80)).isEqualTo(2.25);
    MetricsPage copy = new MetricsPage(3);
    page.copyTo(copy);
    page.set(0, 9.0);
    assertThat(copy.get(0)).isEqualTo(1.5);
    assertThat(copy.count(1)).isEqualTo(2);
  }

  @Test
  void quantilesAreThoseOfPromQl() {
    MetricsSnapshot.Histogram histogram = new MetricsSnapshot.Histogram("h", Map.of(), List.of(1.0, 2.0, 4.0),
        List.of(10L, 10L, 0L, 5L), 60);
    assertThat(histogram.count()).isEqualTo(25);
    assertThat(histogram.mean()).isEqualTo(2.4);
    assertThat(histogram.quantile(0.2)).isEqualTo(0.5);
    assertThat(histogram.quantile(0.4)).isEqualTo(1.0);
    assertThat(histogram.quantile(0.6)).isEqualTo(1.5);
    assertThat(histogram.quantile(0.99)).as("beyond the last bound").isEqualTo(4.0);
    assertThat(new MetricsSnapshot.Histogram("h", Map.of(), List.of(1.0), List.of(0L, 0L), 0).quantile(0.5)).isNaN();
    assertThatThrownBy(() -> histogram.quantile(1.1)).hasMessageContaining("1.1");
  }

  /** A reader of another process sees one moment or none. */
  @Test
  @Timeout(60)
  void aCopyWithoutTheLockIsOfOneMoment() throws InterruptedException {
    int cells = 500;
    MetricsPage page = new MetricsPage(cells);
    AtomicBoolean done = new AtomicBoolean();
    Thread writer = Thread.ofPlatform().start(() -> {
      for (long moment = 1; !done.get(); moment++) {
        page.beginUpdate();
        for (int cell = 0; cell < cells; cell++) {
          page.set(cell, moment);
        }
        page.endUpdate(moment);
        for (int i = 0; i < 500; i++) {
          Thread.onSpinWait();
        }
      }
    });
    MetricsPage other = MetricsPage.ofOther(page.memory().asReadOnly(), cells);
    MetricsPage copy = new MetricsPage(cells);
    int whole = 0;
    double last = 0;
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Await.SECONDS);
    while (whole < 10_000 && System.nanoTime() - end < 0) {
      if (other.tryCopyTo(copy, () -> { })) {
        whole++;
        last = copy.get(0);
        for (int cell = 0; cell < cells; cell++) {
          assertThat(copy.get(cell)).isEqualTo(last);
        }
        assertThat(copy.updatedMillis()).isEqualTo((long) last);
      }
    }
    done.set(true);
    Await.ended(writer);
    assertThat(whole).as("whole copies in %d s", Await.SECONDS).isEqualTo(10_000);
    assertThat(last).isPositive();
    assertThatThrownBy(() -> MetricsPage.ofOther(page.memory(), cells + 1)).hasMessageContaining("501");
  }
}
