package dev.tacho.metrics.logger;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class StatLoggerManagerTest {
  private final List<String> calls = new ArrayList<>();

  @Test
  void theFirstLineComesOneIntervalAfterTheStart() {
    StatLoggerManager manager = new StatLoggerManager(List.of(new Noting("a")), Duration.ofNanos(10), 100);
    for (long now = 100; now < 135; now++) {
      manager.log(now);
    }
    assertThat(calls).containsExactly("a 110", "a 120", "a 130");
  }

  @Test
  void theTimeToTheNextLineIsWhatIsLeftOfTheInterval() {
    StatLoggerManager manager = new StatLoggerManager(List.of(), Duration.ofNanos(10), 100);
    assertThat(manager.nanosToLog(100)).isEqualTo(10);
    assertThat(manager.nanosToLog(103)).isEqualTo(7);
    assertThat(manager.nanosToLog(125)).as("overdue").isZero();
    manager.log(125);
    assertThat(manager.nanosToLog(126)).isEqualTo(9);
  }

  @Test
  void noIntervalMeansNoLines() {
    StatLoggerManager manager = new StatLoggerManager(List.of(new Noting("a")), Duration.ZERO, 0);
    assertThat(manager.nanosToLog(5)).isEqualTo(Long.MAX_VALUE);
    manager.log(1_000_000_000_000L);
    assertThat(calls).isEmpty();
  }

  @Test
  void everyLoggerIsClosedThoughOneFails() {
    StatLogger failing = new Noting("b") {
      @Override
      public void close() {
        throw new IllegalStateException("b");
      }
    };
    new StatLoggerManager(List.of(failing, new Noting("a")), Duration.ZERO, 0).close();
    assertThat(calls).containsExactly("a closed");
  }

  /** Notes its calls. */
  private class Noting implements StatLogger {
    private final String name;

    Noting(String name) {
      this.name = name;
    }

    @Override
    public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {}

    @Override
    public void log(long nanos) {
      calls.add(name + " " + nanos);
    }

    @Override
    public void close() {
      calls.add(name + " closed");
    }
  }
}
