package dev.tacho.engine.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class BlockResidencyTest {
  private final List<String> evictions = new ArrayList<>();

  private void evicted(long lifetimeNanos, long idleNanos, long[] gapsNanos, int numGaps) {
    evictions.add(lifetimeNanos + " " + idleNanos + " " + Arrays.toString(Arrays.copyOf(gapsNanos, numGaps)));
  }

  private BlockResidency residency(int numBlocks, double sampleRate) {
    return new BlockResidency(numBlocks, sampleRate, 5, this::evicted);
  }

  @Test
  void measuresLifetimeIdleTimeAndTheLatestGaps() {
    BlockResidency r = residency(3, 1);
    r.setNanos(10);
    r.allocated(1);
    r.evicted(2);
    for (long now : new long[] {20, 25, 40, 70, 71}) {
      r.setNanos(now);
      r.reused(1);
    }
    r.setNanos(100);
    r.evicted(1);
    r.evicted(1);
    assertThat(evictions).containsExactly("90 29 [15, 30, 1]");
  }

  @Test
  void samplesAShareOfTheBlocks() {
    BlockResidency r = residency(10_000, 0.1);
    for (int block = 0; block < 10_000; block++) {
      r.allocated(block);
    }
    for (int block = 0; block < 10_000; block++) {
      r.evicted(block);
    }
    assertThat(evictions.size()).isBetween(850, 1150);
  }

  @Test
  void aResetForgetsWhatWasWatched() {
    BlockResidency r = residency(2, 1);
    r.allocated(1);
    r.reset();
    r.evicted(1);
    assertThat(evictions).isEmpty();
    assertThatThrownBy(() -> residency(2, 0)).hasMessage("kv_cache_metrics_sample must be in (0, 1], is 0.0");
  }

  @Test
  void theLatestGapsAreRightHoweverOftenABlockIsUsed() {
    BlockResidency r = residency(2, 1);
    r.setNanos(0);
    r.allocated(1);
    for (int use = 1; use <= 21; use++) {
      r.setNanos((long) use * use);
      r.reused(1);
    }
    r.setNanos(500);
    r.evicted(1);
    assertThat(evictions).containsExactly("500 59 [37, 39, 41]");
  }

  @Test
  void withoutPrefixCachingNoEvictionIsReported() {
    for (boolean caching : new boolean[] {false, true}) {
      evictions.clear();
      KvBlockPool pool = new KvBlockPool(2, 16, caching);
      pool.watch(residency(2, 1));
      for (int i = 0; i < 2; i++) {
        BlockTable table = new BlockTable();
        pool.allocate(1, table);
        pool.release(table);
      }
      assertThat(evictions).hasSize(caching ? 1 : 0);
    }
  }
}
