package dev.tacho.metrics.stats;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class ResidencySamplerTest {
  private final List<List<Long>> evictions = new ArrayList<>();

  private void drain(ResidencySampler sampler) {
    sampler.drainTo((life, idle, first, second, third) -> evictions.add(List.of(life, idle, first, second, third)));
  }

  @Test
  void theLatestGapsAreRightHoweverOftenABlockIsUsed() {
    ResidencySampler sampler = new ResidencySampler(2, 1, () -> 0);
    for (int uses = 0; uses <= 21; uses++) {
      sampler.allocated(1, 0);
      for (long use = 1; use <= uses; use++) {
        sampler.used(1, use * use);
      }
      sampler.evicted(1, 500);
    }
    drain(sampler);
    assertThat(evictions.get(0)).containsExactly(500L, 500L, -1L, -1L, -1L);
    assertThat(evictions.get(3)).containsExactly(500L, 491L, 3L, 5L, -1L);
    for (long uses = 4; uses <= 21; uses++) {
      assertThat(evictions.get((int) uses))
          .as("%d uses", uses)
          .containsExactly(500L, 500 - uses * uses, 2 * uses - 5, 2 * uses - 3, 2 * uses - 1);
    }
  }

  @Test
  void followsAShareOfTheBlocks() {
    ResidencySampler sampler = new ResidencySampler(10_000, 0.1, new SplittableRandom(5)::nextDouble);
    for (int block = 0; block < 10_000; block++) {
      sampler.allocated(block, 0);
    }
    assertThat(sampler.tracked()).isBetween(850, 1150);
    for (int block = 0; block < 10_000; block++) {
      sampler.evicted(block, 1);
    }
    drain(sampler);
    assertThat(evictions.size()).isBetween(850, 1150);
  }
}
