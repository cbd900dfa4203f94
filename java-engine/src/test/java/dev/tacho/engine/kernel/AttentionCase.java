package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * Sequences with random keys and values in a paged cache whose blocks lie in random order. Every slot that no token has
 * reached, every block that no table names and every table entry behind the last block is poison.
 */
final class AttentionCase {
  /**
   * A sequence of the step.
   *
   * @param before tokens in the cache before the step
   * @param queries tokens of the step
   */
  record Sequence(int before, int queries) {
    int context() {
      return before + queries;
    }
  }

  private static final DType[] KV_TYPES = {DType.F32, DType.F16, DType.BF16, DType.Q8_0};

  private final KernelBench bench;
  private final List<Sequence> sequences;
  private final List<int[]> tables = new ArrayList<>();
  private final int maxBlocks;
  final AttentionShape shape;
  final KvCacheLayer cache;
  final Matrix q;

  /** With a random type of cache. */
  AttentionCase(KernelBench bench, int headDim, int kvHeads, int group, List<Sequence> sequences, Random random) {
    this(bench, headDim, kvHeads, group, KV_TYPES[random.nextInt(KV_TYPES.length)], sequences, random);
  }

  AttentionCase(
      KernelBench bench,
      int headDim,
      int kvHeads,
      int group,
      DType dtype,
      List<Sequence> sequences,
      Random random) {
    this(bench, randomShape(bench, headDim, kvHeads, group, random), dtype, sequences, random);
  }

  private static AttentionShape randomShape(
      KernelBench bench, int headDim, int kvHeads, int group, Random random) {
    int window = random.nextBoolean() ? 0 : 1 + random.nextInt(40);
    return shape(
        bench, headDim, kvHeads, group, window, random.nextInt(3) == 0 ? 5 : 0, random.nextInt(3) == 0, random);
  }

  static AttentionShape shape(
      KernelBench bench,
      int headDim,
      int kvHeads,
      int group,
      int window,
      float softcap,
      boolean sinks,
      Random random) {
    int heads = kvHeads * group;
    MemorySegment values = sinks ? bench.matrix(1, heads, heads).fill(random).segment() : null;
    return new AttentionShape(heads, kvHeads, headDim, (float) (1 / Math.sqrt(headDim)), window, softcap, values);
  }

  AttentionCase(
      KernelBench bench, AttentionShape shape, DType dtype, List<Sequence> sequences, Random random) {
    this.bench = bench;
    this.shape = shape;
    this.sequences = sequences;
    int kvHeads = shape.numKvHeads();
    int headDim = shape.headDim();
    List<Integer> free = new ArrayList<>();
    int blocks = sequences.stream().mapToInt(s -> (s.context() + 15) / 16).sum();
    for (int block = 1; block < blocks + 3; block++) {
      free.add(block);
    }
    Collections.shuffle(free, random);
    maxBlocks = sequences.stream().mapToInt(s -> (s.context() + 15) / 16).max().orElseThrow() + 2;
    int numBlocks = blocks + 3;
    long bytes = numBlocks * KvCacheLayer.blockBytes(dtype, kvHeads, headDim);
    MemorySegment k = bench.arena.allocate(bytes, 64);
    MemorySegment v = bench.arena.allocate(bytes, 64);
    KernelBench.poison(k);
    KernelBench.poison(v);
    cache = new KvCacheLayer(dtype, numBlocks, kvHeads, headDim, k, v);
    for (Sequence sequence : sequences) {
      int[] table = new int[(sequence.context() + 15) / 16];
      for (int i = 0; i < table.length; i++) {
        table[i] = free.removeLast();
      }
      tables.add(table);
      fill(table, sequence.context(), random);
    }
    int rows = sequences.stream().mapToInt(Sequence::queries).sum();
    int columns = shape.numHeads() * headDim;
    q = bench.matrix(rows, columns, columns + random.nextInt(5)).fill(random);
  }

  private void fill(int[] table, int context, Random random) {
    for (int token = 0; token < context; token++) {
      for (int head = 0; head < cache.numKvHeads(); head++) {
        long start = cache.headOffset(table[token / 16], head);
        for (int d = 0; d < cache.headDim(); d++) {
          element(cache.k(), start, cache.keyIndex(token % 16, d), token, d, random);
          element(cache.v(), start, cache.valueIndex(token % 16, d), token, d, random);
        }
      }
    }
  }

  /** Normally distributed; of Q8_0 a random code, whose scale makes elements of about 1. */
  private void element(MemorySegment to, long panel, long index, int token, int d, Random random) {
    if (cache.dtype() == DType.Q8_0) {
      Elements.set(DType.F16, to, panel + cache.scaleOffset(token % 16, d), 0, 1 / (64f + d % 32));
      to.set(JAVA_BYTE, panel + cache.codesOffset() + index, (byte) random.nextInt());
    } else {
      Elements.set(cache.dtype(), to, panel, index, (float) random.nextGaussian());
    }
  }

  /** The whole step, planned for so many workers. */
  AttentionBatch batch(int workers) {
    AttentionBatch batch = empty(q.rows(), workers);
    for (int i = 0; i < sequences.size(); i++) {
      add(batch, i, sequences.get(i).queries(), sequences.get(i).context());
    }
    batch.plan();
    return batch;
  }

  /** One sequence alone, with {@code queries} tokens up to a context of {@code context}. */
  AttentionBatch part(int sequence, int queries, int context) {
    AttentionBatch batch = empty(queries, 1);
    add(batch, sequence, queries, context);
    batch.plan();
    return batch;
  }

  private AttentionBatch empty(int tokens, int workers) {
    AttentionBatch batch =
        new AttentionBatch(bench.arena, sequences.size(), tokens, maxBlocks, workers, shape);
    batch.clear();
    batch.blockTable().fill((byte) 0x7f);
    return batch;
  }

  private void add(AttentionBatch batch, int sequence, int queries, int context) {
    int index = batch.addSequence(queries, context);
    int[] table = tables.get(sequence);
    for (int i = 0; i < (context + 15) / 16; i++) {
      batch.setBlock(index, i, table[i]);
    }
  }

  Matrix out() {
    return bench.matrix(q.rows(), q.columns(), q.columns() + 3);
  }

  /** Runs a batch whose first query is {@code row} of q and out. */
  void run(Kernels kernels, AttentionBatch batch, int row, Matrix out, int begin, int end, KernelWorker worker) {
    MemorySegment queries = q.segment().asSlice((long) row * q.ld() * Float.BYTES);
    MemorySegment results = out.segment().asSlice((long) row * out.ld() * Float.BYTES);
    kernels.attention(shape, cache, batch, queries, q.ld(), results, out.ld(), begin, end, worker);
  }
}
