package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** Wrong arguments: every provider refuses them with words, before anything is computed or counted. */
@ParameterizedClass(name = "{0}")
@MethodSource("dev.tacho.engine.kernel.Implementation#available")
class ArgumentContractTest {
  private static final int M = 3;
  private static final int N = 20;
  private static final int K = 64;

  private final Implementation implementation;

  ArgumentContractTest(Implementation implementation) {
    this.implementation = implementation;
  }

  private KernelBench bench;
  private Kernels kernels;
  private Matrix x;
  private Matrix y;
  private Weight weight;
  private KvCacheLayer cache;
  private AttentionShape shape;
  private AttentionBatch batch;
  private MemorySegment ids;
  private MemorySegment slots;
  private MemorySegment pairs;

  @BeforeEach
  void open() {
    bench = new KernelBench(implementation);
    kernels = bench.kernels;
    Random random = new Random(5);
    x = bench.matrix(M, K, K).fill(random);
    y = bench.matrix(M, K, K);
    weight = bench.pack(kernels, DType.Q8_0, N, K, bench.fileBytes(DType.Q8_0, N, K, random), bench.worker);
    long cacheBytes = 4 * KvCacheLayer.blockBytes(DType.F16, 2, 16);
    MemorySegment k = bench.arena.allocate(cacheBytes, 64);
    MemorySegment v = bench.arena.allocate(cacheBytes, 64);
    cache = new KvCacheLayer(DType.F16, 4, 2, 16, k, v);
    shape = new AttentionShape(4, 2, 16, 0.25f, 0, 0, null);
    // Three workers, who cannot share two heads: so there are partials.
    batch = new AttentionBatch(bench.arena, 2, M, 2, 3, shape);
    batch.clear();
    batch.addSequence(M, 20);
    batch.setBlock(0, 0, 1);
    batch.setBlock(0, 1, 2);
    batch.plan();
    ids = bench.arena.allocate(JAVA_INT, M);
    slots = bench.arena.allocate(JAVA_LONG, M);
    pairs = bench.arena.allocate(JAVA_LONG, 2);
    pairs.setAtIndex(JAVA_LONG, 1, 1);
    bench.worker.counters().fill((byte) 0);
  }

  @AfterEach
  void close() {
    bench.close();
  }

  private static MemorySegment shorter(MemorySegment segment) {
    return segment.asSlice(0, segment.byteSize() - 1);
  }

  private void refused(String words, ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessageContaining(words);
    for (Operation operation : Operation.values()) {
      assertThat(KernelBench.counters(bench.worker, operation)).as("%s", operation).containsOnly(0L);
    }
    y.assertSameBits("y", bench.matrix(M, K, K));
  }

  private ActivationRows rows(MemorySegment data, int k) {
    return new ActivationRows(ActivationFormat.INT8, k, kernels.activationRowBytes(ActivationFormat.INT8, k), data);
  }

  private void matmul(Weight w, ActivationRows input, int m, MemorySegment output, int ldy, int end) {
    kernels.matmul(w, null, input, m, output, ldy, false, 0, end, bench.worker);
  }

  @Test
  void matmul() {
    long rowBytes = kernels.activationRowBytes(ActivationFormat.INT8, K);
    ActivationRows in = rows(bench.arena.allocate(M * rowBytes, 64), K);
    MemorySegment out = y.segment();
    refused(
        "x has " + (M * rowBytes - 1) + " bytes, its shape needs " + M * rowBytes,
        () -> matmul(weight, rows(shorter(in.data()), K), M, out, K, 2));
    refused("y has 335 bytes, its shape needs 336", () -> matmul(weight, in, 2, out.asSlice(0, 335), K, 2));
    ActivationRows near = new ActivationRows(ActivationFormat.INT8, K, rowBytes - 4, in.data());
    refused(
        "x: 3 rows of " + rowBytes + " bytes, " + (rowBytes - 4) + " bytes apart",
        () -> matmul(weight, near, M, out, K, 2));
    ActivationRows floats = ActivationRows.floats(x.segment(), K, K);
    refused(
        "x has rows of 64 elements as FLOAT32, the weight of Q8_0 needs 64 as INT8",
        () -> matmul(weight, floats, M, out, K, 2));
    refused("x has rows of 32 elements", () -> matmul(weight, rows(in.data(), 32), M, out, K, 2));
    refused("y: 3 rows of 20 elements, 19 elements apart", () -> matmul(weight, in, M, out, N - 1, 2));
    refused("x: -1 rows", () -> matmul(weight, in, -1, out, K, 2));
    refused("items [0, 3) of 2", () -> matmul(weight, in, M, out, K, 3));
    Weight small = new Weight(DType.Q8_0, N, K, shorter(weight.data()));
    refused("weight has ", () -> matmul(small, in, M, out, K, 2));
    Weight odd = new Weight(DType.Q8_0, N, 33, weight.data());
    refused("rows of 33 elements are not whole blocks of 32 of Q8_0", () -> matmul(odd, in, M, out, K, 2));
    Weight negative = new Weight(DType.Q8_0, -1, K, weight.data());
    refused("n is -1, expected at least 1", () -> matmul(negative, in, M, out, K, 0));
    refused(
        "bias has 79 bytes, its shape needs 80",
        () -> kernels.matmul(weight, out.asSlice(0, 79), in, M, out, K, false, 0, 2, bench.worker));
  }

  @Test
  void activations() {
    MemorySegment in = x.segment();
    long rowBytes = kernels.activationRowBytes(ActivationFormat.INT8, K);
    ActivationRows packed = rows(bench.arena.allocate(M * rowBytes, 64), K);
    refused("x has 767 bytes", () -> kernels.activationPack(shorter(in), K, M, packed, 0, 2, bench.worker));
    refused("items [0, 3) of 2", () -> kernels.activationPack(in, K, M, packed, 0, 3, bench.worker));
    refused(
        "x: 3 rows of 64 elements, 63 elements apart",
        () -> kernels.activationPack(in, K - 1, M, packed, 0, 2, bench.worker));
    ActivationRows less = rows(shorter(packed.data()), K);
    refused("packed has ", () -> kernels.activationPack(in, K, M, less, 0, 2, bench.worker));
    ActivationRows readOnly = rows(packed.data().asReadOnly(), K);
    refused("packed is read-only", () -> kernels.activationPack(in, K, M, readOnly, 0, 2, bench.worker));
    assertThatThrownBy(() -> kernels.activationRowBytes(ActivationFormat.INT8, 33))
        .hasMessage("rows of 33 elements are not whole blocks of 32 of INT8");
  }

  @Test
  void memoryThatKernelsCannotUse() {
    MemorySegment out = y.segment();
    long bytes = M * kernels.activationRowBytes(ActivationFormat.INT8, K);
    MemorySegment onHeap = MemorySegment.ofArray(new byte[(int) bytes]);
    refused("x is on the heap", () -> matmul(weight, rows(onHeap, K), M, out, K, 2));
    MemorySegment released;
    try (Arena arena = Arena.ofConfined()) {
      released = arena.allocate(bytes, 4);
    }
    refused("x is memory that was already released", () -> matmul(weight, rows(released, K), M, out, K, 2));
    MemorySegment unaligned = bench.arena.allocate(bytes + 1, 4).asSlice(1);
    refused("x is not aligned to 4 bytes", () -> matmul(weight, rows(unaligned, K), M, out, K, 2));
    ActivationRows in = rows(bench.arena.allocate(bytes, 4), K);
    refused("y is read-only", () -> matmul(weight, in, M, out.asReadOnly(), K, 2));
  }

  @Test
  void memoryOfAnotherThread() throws InterruptedException {
    try (Arena confined = Arena.ofConfined()) {
      long bytes = M * kernels.activationRowBytes(ActivationFormat.INT8, K);
      ActivationRows own = rows(confined.allocate(bytes, 4), K);
      Thread thread =
          new Thread(
              () ->
                  refused(
                      "x is memory that only another thread may use",
                      () -> matmul(weight, own, M, y.segment(), K, 2)));
      Throwable[] thrown = new Throwable[1];
      thread.setUncaughtExceptionHandler((t, e) -> thrown[0] = e);
      thread.start();
      thread.join();
      assertThat(thrown[0]).isNull();
    }
  }

  @Test
  void weightPack() {
    MemorySegment source = bench.fileBytes(DType.Q8_0, N, K, new Random(1));
    refused(
        "source has 1359 bytes, its shape needs 1360",
        () -> kernels.weightPack(weight, shorter(source), 0, 2, bench.worker));
    refused("items [1, 0) of 2", () -> kernels.weightPack(weight, source, 1, 0, bench.worker));
    refused("items [-1, 1) of 2", () -> kernels.weightPack(weight, source, -1, 1, bench.worker));
    assertThatThrownBy(() -> kernels.weightBytes(DType.Q4_0, 4, 48))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("rows of 48 elements are not whole blocks of 32 of Q4_0");
  }

  @Test
  void embeddingLookup() {
    ids.setAtIndex(JAVA_INT, 1, N);
    refused(
        "ids[1] is 20, the table has 20 rows",
        () -> kernels.embeddingLookup(weight, ids, M, y.segment(), K, 0, M, bench.worker));
    ids.setAtIndex(JAVA_INT, 1, -1);
    refused(
        "ids[1] is -1, the table has 20 rows",
        () -> kernels.embeddingLookup(weight, ids, M, y.segment(), K, 0, M, bench.worker));
    refused(
        "ids has 11 bytes, its shape needs 12",
        () -> kernels.embeddingLookup(weight, shorter(ids), M, y.segment(), K, 0, 1, bench.worker));
    kernels.embeddingLookup(weight, ids, M, y.segment(), K, 0, 1, bench.worker);
    assertThat(y.get(0, 0)).as("the wrong id is not in the range").isFinite();
  }

  @Test
  void rows() {
    MemorySegment in = x.segment();
    MemorySegment out = y.segment();
    ActivationRows normed = ActivationRows.floats(out, K, K);
    refused(
        "weight has 255 bytes, its shape needs 256",
        () -> kernels.rmsNorm(in, K, in.asSlice(0, 255), 1e-5f, M, normed, 0, M, bench.worker));
    refused("epsilon is NaN", () -> kernels.rmsNorm(in, K, in, Float.NaN, M, normed, 0, M, bench.worker));
    ActivationRows none = ActivationRows.floats(out, K, 0);
    refused("k is 0", () -> kernels.rmsNorm(in, K, in, 1e-5f, M, none, 0, M, bench.worker));
    refused("items [0, 3) of 2", () -> kernels.siluMul(in, K, in, K, M, normed, 0, 3, bench.worker));
    ActivationRows tooNear = new ActivationRows(ActivationFormat.FLOAT32, K, 252, out);
    refused(
        "3 rows of 256 bytes, 252 bytes apart",
        () -> kernels.siluMul(in, K, in, K, M, tooNear, 0, 2, bench.worker));
    refused("gate has 767 bytes", () -> kernels.siluMul(shorter(in), K, in, K, M, normed, 0, 2, bench.worker));
    refused("up has 767 bytes", () -> kernels.siluMul(in, K, shorter(in), K, M, normed, 0, 2, bench.worker));
    ActivationRows tooShort = ActivationRows.floats(shorter(out), K, K);
    refused("y has 767 bytes", () -> kernels.siluMul(in, K, in, K, M, tooShort, 0, 2, bench.worker));
  }

  @Test
  void rope() {
    MemorySegment in = x.segment();
    MemorySegment out = y.segment();
    RopePairing pairing = RopePairing.HALVES;
    refused(
        "ropeDim is 18, expected an even number up to the head size 16",
        () -> kernels.rope(pairing, 18, in, M, 4, 16, out, K, 0, M, bench.worker));
    refused("ropeDim is 15", () -> kernels.rope(pairing, 15, in, M, 4, 16, out, K, 0, M, bench.worker));
    refused(
        "cosSin has 191 bytes, its shape needs 192",
        () -> kernels.rope(pairing, 16, in.asSlice(0, 191), M, 4, 16, out, K, 0, M, bench.worker));
    refused("x: 3 rows of 80", () -> kernels.rope(pairing, 16, in, M, 5, 16, out, K, 0, M, bench.worker));
  }

  private void kvWrite(KvCacheLayer layer, MemorySegment at, int end) {
    kernels.kvWrite(layer, at, M, x.segment(), K, x.segment(), K, 0, end, bench.worker);
  }

  @Test
  void kvWrite() {
    slots.setAtIndex(JAVA_LONG, 2, 64);
    refused("slots[2] is 64, the cache has 64 slots", () -> kvWrite(cache, slots, 2));
    slots.setAtIndex(JAVA_LONG, 2, -2);
    refused("slots[2] is -2, the cache has 64 slots", () -> kvWrite(cache, slots, 2));
    refused("slots has 23 bytes, its shape needs 24", () -> kvWrite(cache, shorter(slots), 2));
    refused("items [0, 3) of 2", () -> kvWrite(cache, slots, 3));
    refused("KV cache needs 4096 bytes each, K has 4095", () -> cacheOf(shorter(cache.k())));
  }

  private KvCacheLayer cacheOf(MemorySegment k) {
    return new KvCacheLayer(DType.F16, 4, 2, 16, k, cache.v());
  }

  private void attention(AttentionShape by, KernelWorker worker, int end) {
    kernels.attention(by, cache, batch, x.segment(), K, y.segment(), K, 0, end, worker);
  }

  @Test
  void attention() {
    refused("items [0, 3) of 2", () -> attention(shape, bench.worker, 3));
    AttentionShape other = new AttentionShape(2, 1, 32, 1, 0, 0, null);
    refused("1 kv heads of 32 elements in the shape, 2 of 16 in the cache", () -> attention(other, bench.worker, 2));
    AttentionShape sinks = new AttentionShape(4, 2, 16, 1, 0, 0, bench.arena.allocate(15));
    refused("sinks has 15 bytes, its shape needs 16", () -> attention(sinks, bench.worker, 2));
    batch.setBlock(0, 1, 4);
    refused("block 1 of sequence 0 is 4, the cache has 4 blocks", () -> attention(shape, bench.worker, 2));
    batch.setBlock(0, 1, -1);
    refused("block 1 of sequence 0 is -1, the cache has 4 blocks", () -> attention(shape, bench.worker, 2));
    batch.setBlock(0, 1, 2);
    batch.contextLens().setAtIndex(JAVA_INT, 0, 33);
    refused("sequence 0 has 33 tokens in the cache, 3 queries and 2 blocks", () -> attention(shape, bench.worker, 2));
    batch.contextLens().setAtIndex(JAVA_INT, 0, 2);
    refused("sequence 0 has 2 tokens in the cache, 3 queries", () -> attention(shape, bench.worker, 2));
    batch.contextLens().setAtIndex(JAVA_INT, 0, 20);
    batch.items().setAtIndex(JAVA_INT, 5, 2);
    refused("item 0 has splits [0, 2) of 1 and no partials", () -> attention(shape, bench.worker, 2));
    batch.items().setAtIndex(JAVA_INT, 5, 1);
    batch.items().setAtIndex(JAVA_INT, 6, 27);
    refused("item 0 has 6 partials from 27 of 8 and ticket 0 of 12", () -> attention(shape, bench.worker, 2));
    batch.items().setAtIndex(JAVA_INT, 6, 0);
    batch.items().setAtIndex(JAVA_INT, 7, 12);
    refused("item 0 has 6 partials from 0 of 8 and ticket 12 of 12", () -> attention(shape, bench.worker, 2));
    batch.items().setAtIndex(JAVA_INT, 6, -1);
    batch.items().setAtIndex(JAVA_INT, 3, 4);
    refused("item 0 has queries [0, 4) of 3", () -> attention(shape, bench.worker, 2));
    batch.items().setAtIndex(JAVA_INT, 1, 2);
    refused("item 0 is for sequence 0 of 1 and kv head 2 of 2", () -> attention(shape, bench.worker, 2));
  }

  @Test
  void shapesOfAttention() {
    assertThatThrownBy(() -> new AttentionShape(3, 2, 16, 1, 0, 0, null))
        .hasMessage("3 heads are no multiple of 2 kv heads");
    assertThatThrownBy(() -> new AttentionShape(2, 2, 514, 1, 0, 0, null)).hasMessageContaining("head size 514");
    assertThatThrownBy(() -> new AttentionShape(2, 2, 16, 1, -1, 0, null)).hasMessageContaining("window -1");
    assertThatThrownBy(() -> new AttentionShape(2, 2, 16, Float.NaN, 0, 0, null)).hasMessageContaining("scale NaN");
  }

  private void copy(MemorySegment[] caches, int numBlocks) {
    kernels.kvCopyBlocks(caches, 64, numBlocks, pairs, 1, 0, caches.length, bench.worker);
  }

  private void copyTwo(MemorySegment[] caches, MemorySegment two) {
    kernels.kvCopyBlocks(caches, 64, 64, two, 2, 0, 2, bench.worker);
  }

  @Test
  void kvCopyBlocks() {
    MemorySegment[] caches = {cache.k(), cache.v()};
    refused("cache has 4096 bytes, its shape needs 4160", () -> copy(caches, 65));
    pairs.setAtIndex(JAVA_LONG, 1, 64);
    refused("pair 0 names block 64, the cache has 64 blocks", () -> copy(caches, 64));
    pairs.setAtIndex(JAVA_LONG, 1, 0);
    refused("pair 0 copies block 0 to itself", () -> copy(caches, 64));
    MemorySegment two = bench.arena.allocate(JAVA_LONG, 4);
    two.copyFrom(MemorySegment.ofArray(new long[] {1, 2, 2, 3}));
    refused("pair 0 copies to block 2, which pair 1 reads", () -> copyTwo(caches, two));
    two.copyFrom(MemorySegment.ofArray(new long[] {1, 2, 3, 1}));
    refused("pair 1 copies to block 1, which pair 0 reads", () -> copyTwo(caches, two));
    two.copyFrom(MemorySegment.ofArray(new long[] {1, 2, 3, 2}));
    refused("pair 0 copies to block 2, which pair 1 copies to", () -> copyTwo(caches, two));
    refused("numPairs is -1", () -> kernels.kvCopyBlocks(caches, 64, 32, pairs, -1, 0, 0, bench.worker));
    refused("blockBytes is 0", () -> kernels.kvCopyBlocks(caches, 0, 32, pairs, 1, 0, 0, bench.worker));
  }
}
