package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import com.sun.management.ThreadMXBean;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Once compiled, no operation of any provider allocates a byte: vectors stay in registers, calls box nothing. */
@ParameterizedClass(name = "{0}")
@MethodSource("dev.tacho.engine.kernel.Implementation#available")
class AllocationContractTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final long ROUND_NANOS = 50_000_000;
  private static final int ROUNDS = 300;
  private static final int CLEAN_CALLS = 100;

  private final Implementation implementation;

  AllocationContractTest(Implementation implementation) {
    this.implementation = implementation;
  }

  /** Warms up until a hundred calls in a row allocate nothing; when that is, the JIT decides. */
  private static void assertAllocatesNothing(String name, Runnable call) {
    long bytes = 0;
    for (int round = 0; round < ROUNDS; round++) {
      long end = System.nanoTime() + ROUND_NANOS;
      while (System.nanoTime() - end < 0) {
        call.run();
      }
      long before = THREADS.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < CLEAN_CALLS; i++) {
        call.run();
      }
      bytes = THREADS.getCurrentThreadAllocatedBytes() - before;
      if (bytes == 0) {
        return;
      }
    }
    throw new AssertionError(name + " still allocates " + bytes + " bytes in " + CLEAN_CALLS + " calls");
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(DType.class)
  void matmulAndEmbeddingLookup(DType dtype) {
    try (KernelBench bench = new KernelBench(implementation)) {
      Random random = new Random(3);
      int n = 40;
      int k = 3 * Math.max(32, dtype.blockElements());
      MemorySegment source = bench.fileBytes(dtype, n, k, random);
      Weight weight = bench.pack(bench.kernels, dtype, n, k, source, bench.worker);
      Matrix x = bench.matrix(5, k, k).fill(random);
      Matrix y = bench.matrix(5, n, n);
      Matrix rows = bench.matrix(5, k, k);
      MemorySegment ids = bench.arena.allocate(JAVA_INT, 5);
      ActivationRows packed = bench.packRows(bench.kernels, dtype, x, bench.worker);
      int blocks = k / Kernels.ACTIVATION_BLOCK;
      Runnable matmul =
          () -> {
            bench.kernels.matmul(weight, null, packed, 5, y.segment(), n, false, 0, 3, bench.worker);
            bench.kernels.matmul(weight, x.segment(), packed, 1, y.segment(), n, true, 0, 3, bench.worker);
          };
      assertAllocatesNothing("matmul", matmul);
      assertAllocatesNothing(
          "activationPack",
          () -> bench.kernels.activationPack(x.segment(), k, 5, packed, 0, blocks, bench.worker));
      assertAllocatesNothing(
          "rmsNorm to " + packed.format(),
          () -> bench.kernels.rmsNorm(x.segment(), k, x.segment(), 1e-5f, 5, packed, 0, 5, bench.worker));
      assertAllocatesNothing(
          "embeddingLookup",
          () -> bench.kernels.embeddingLookup(weight, ids, 5, rows.segment(), k, 0, 5, bench.worker));
    }
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(value = DType.class, names = {"F32", "F16", "BF16", "Q8_0"})
  void attentionAndTheCache(DType dtype) {
    try (KernelBench bench = new KernelBench(implementation)) {
      Random random = new Random(dtype.id());
      List<AttentionCase.Sequence> sequences =
          List.of(new AttentionCase.Sequence(1500, 1), new AttentionCase.Sequence(10, 5));
      AttentionCase attention = new AttentionCase(bench, 80, 2, 3, dtype, sequences, random);
      AttentionBatch batch = attention.batch(2);
      Matrix out = attention.out();
      MemorySegment queries = attention.q.segment();
      MemorySegment results = out.segment();
      Runnable attend =
          () ->
              bench.kernels.attention(
                  attention.shape,
                  attention.cache,
                  batch,
                  queries,
                  attention.q.ld(),
                  results,
                  out.ld(),
                  0,
                  batch.numItems(),
                  bench.worker);
      assertAllocatesNothing("attention", attend);
      MemorySegment slots = bench.arena.allocate(JAVA_LONG, 6);
      Matrix k = bench.matrix(6, 160, 160).fill(random);
      assertAllocatesNothing(
          "kvWrite",
          () ->
              bench.kernels.kvWrite(
                  attention.cache, slots, 6, k.segment(), 160, k.segment(), 160, 0, 2, bench.worker));
      MemorySegment[] caches = {attention.cache.k(), attention.cache.v()};
      MemorySegment pairs = bench.arena.allocate(JAVA_LONG, 2);
      pairs.setAtIndex(JAVA_LONG, 1, 1);
      assertAllocatesNothing(
          "kvCopyBlocks", () -> bench.kernels.kvCopyBlocks(caches, 256, 2, pairs, 1, 0, 2, bench.worker));
    }
  }

  @Test
  void rowOperations() {
    try (KernelBench bench = new KernelBench(implementation)) {
      int n = 100;
      Matrix x = bench.matrix(3, n, n).fill(new Random(1));
      Matrix y = bench.matrix(3, n, n);
      MemorySegment in = x.segment();
      MemorySegment out = y.segment();
      Kernels kernels = bench.kernels;
      KernelWorker worker = bench.worker;
      ActivationRows floats = ActivationRows.floats(out, n, n);
      assertAllocatesNothing("siluMul", () -> kernels.siluMul(in, n, in, n, 3, floats, 0, 4, worker));
      ActivationRows codes = bench.packRows(kernels, DType.Q8_0, bench.matrix(3, 96, 96).fill(new Random(2)), worker);
      assertAllocatesNothing("siluMul into INT8", () -> kernels.siluMul(in, n, in, n, 3, codes, 0, 3, worker));
      for (RopePairing pairing : RopePairing.values()) {
        assertAllocatesNothing(
            "rope " + pairing, () -> kernels.rope(pairing, 20, in, 3, 4, 25, out, n, 0, 3, worker));
      }
    }
  }
}
