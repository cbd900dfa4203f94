package dev.tacho.engine.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Implementation;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class KvLayoutTest {
  private final KvLayout layout = new KvLayout(2, 3, 8, DType.F16);
  private final Kernels kernels = Implementation.SCALAR.open();

  @Test
  void aBlockIsKeysAndValuesOfAllLayers() {
    assertThat(layout.blockBytes()).isEqualTo(2 * 2 * 3 * 8 * 16 * 2);
    assertThat(new KvLayout(2, 3, 8, DType.F32).blockBytes()).isEqualTo(2 * layout.blockBytes());
  }

  @Test
  void countsWholeBlocksOfABudget() {
    assertThat(layout.blocksForBudget(10 * layout.blockBytes() + 1, 100)).isEqualTo(10);
    assertThat(KvLayout.blocksForTokens(0)).isEqualTo(0);
    assertThat(KvLayout.blocksForTokens(16)).isEqualTo(1);
    assertThat(KvLayout.blocksForTokens(17)).isEqualTo(2);
  }

  @Test
  void aBudgetTooSmallStatesNeededAndConfiguredBytes() {
    // 100 tokens: 7 blocks and the null block, of 3072 bytes each.
    assertThat(layout.blocksForBudget(8 * 3072, 100)).isEqualTo(8);
    assertThatThrownBy(() -> layout.blocksForBudget(8 * 3072 - 1, 100))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("kv_cache_memory", "max_model_len 100", "24576 bytes", "24575 bytes");
    assertThatThrownBy(() -> layout.checkedBlocks(7, 100))
        .hasMessageContainingAll("num_gpu_blocks_override", "8 blocks", "24576 bytes", "21504 bytes", "7 blocks");
  }

  @Test
  void memoryHasTheShapeAndIsZeroed() {
    try (KvMemory memory = new KvMemory(layout, 5, kernels)) {
      assertThat(memory.bytes()).isEqualTo(5 * layout.blockBytes());
      assertThat(memory.numLayers()).isEqualTo(2);
      KvCacheLayer layer = memory.layer(1);
      assertThat(layer.numBlocks()).isEqualTo(5);
      assertThat(layer.k().byteSize()).isEqualTo(5 * layout.blockBytes() / 4);
      assertThat(layer.k().address() % 64).isZero();
      for (long at = 0; at < layer.v().byteSize(); at += 8) {
        assertThat(layer.v().get(ValueLayout.JAVA_LONG, at)).isZero();
      }
    }
  }

  @Test
  void whatIsDiscardedIsAllLayersOnceEach() {
    try (KvMemory memory = new KvMemory(layout, 5, kernels)) {
      List<MemorySegment> discarded = new ArrayList<>();
      memory.discard(discarded::add);
      assertThat(discarded).hasSize(1);
      long rest = discarded.getFirst().byteSize();
      for (int i = 0; i < memory.numLayers(); i++) {
        for (MemorySegment half : List.of(memory.layer(i).k(), memory.layer(i).v())) {
          assertThat(half.address() - discarded.getFirst().address())
              .isBetween(0L, discarded.getFirst().byteSize() - half.byteSize());
          rest -= half.byteSize();
        }
      }
      assertThat(rest).isBetween(0L, 4L * 63);
    }
  }

  @Test
  void closedMemoryIsNotReadable() {
    KvMemory memory = new KvMemory(layout, 2, kernels);
    memory.close();
    memory.close();
    assertThatThrownBy(() -> memory.layer(0).k().get(ValueLayout.JAVA_BYTE, 0))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void memoryThatIsNotToBeHadNamesItsBytes() {
    KvLayout large = new KvLayout(64, 64, 512, DType.F32);
    assertThatThrownBy(() -> new KvMemory(large, 1 << 24, kernels))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContainingAll(Long.toString(large.blockBytes() << 24), "kv_cache_memory");
  }
}
