package dev.tacho.engine.kernel;

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

  private static final DType[] KV_TYPES = {DType.F32, DType.F16, DType.BF16};

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
    this.bench = bench;
    this.sequences = sequences;
    int heads = kvHeads * group;
    Matrix sinks = bench.matrix(1, heads, heads).fill(random);
    shape =
        new AttentionShape(
            heads,
            kvHeads,
            headDim,
            (float) (1 / Math.sqrt(headDim)),
            random.nextBoolean() ? 0 : 1 + random.nextInt(40),
            random.nextInt(3) == 0 ? 5 : 0,
            random.nextInt(3) == 0 ? sinks.segment() : null);
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
    q = bench.matrix(rows, heads * headDim, heads * headDim + random.nextInt(5)).fill(random);
  }

  private void fill(int[] table, int context, Random random) {
    for (int token = 0; token < context; token++) {
      for (int head = 0; head < cache.numKvHeads(); head++) {
        long start = cache.headOffset(table[token / 16], head);
        for (int d = 0; d < cache.headDim(); d++) {
          Elements.set(cache.dtype(), cache.k(), start, 16L * d + token % 16, (float) random.nextGaussian());
          Elements.set(
              cache.dtype(), cache.v(), start, (long) token % 16 * cache.headDim() + d, (float) random.nextGaussian());
        }
      }
    }
  }

  /** The whole step. */
  AttentionBatch batch() {
    AttentionBatch batch = empty(q.rows());
    for (int i = 0; i < sequences.size(); i++) {
      add(batch, i, sequences.get(i).queries(), sequences.get(i).context());
    }
    return batch;
  }

  /** One sequence alone, with {@code queries} tokens up to a context of {@code context}. */
  AttentionBatch part(int sequence, int queries, int context) {
    AttentionBatch batch = empty(queries);
    add(batch, sequence, queries, context);
    return batch;
  }

  private AttentionBatch empty(int tokens) {
    AttentionBatch batch =
        new AttentionBatch(bench.arena, sequences.size(), tokens, maxBlocks, cache.numKvHeads());
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
