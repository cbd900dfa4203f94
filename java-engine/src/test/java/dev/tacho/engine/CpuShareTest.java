package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.parallel.CpuBudget;
import org.junit.jupiter.api.Test;

/** Processors divided among engines. No other engine is open while this test runs. */
class CpuShareTest {
  private static final CpuBudget EIGHT = new CpuBudget(8, 8);

  @Test
  void laterEnginesGetWhatIsLeftAndNeverNothing() {
    try (CpuShare first = CpuShare.take(5, EIGHT);
        CpuShare second = CpuShare.take(0, EIGHT);
        CpuShare third = CpuShare.take(0, EIGHT);
        CpuShare fourth = CpuShare.take(4, EIGHT)) {
      assertThat(first.threads()).isEqualTo(5);
      assertThat(first.budget().threads()).isEqualTo(8);
      assertThat(second.threads()).isEqualTo(3);
      assertThat(third.threads()).isEqualTo(1);
      assertThat(fourth.threads()).as("asked for").isEqualTo(4);
      assertThat(fourth.budget().threads()).as("no spinning").isEqualTo(1);
    }
    try (CpuShare alone = CpuShare.take(0, EIGHT)) {
      assertThat(alone.threads()).isEqualTo(8);
    }
  }
}
