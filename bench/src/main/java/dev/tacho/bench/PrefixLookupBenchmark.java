package dev.tacho.bench;

import dev.tacho.engine.kv.BlockAllocator;
import dev.tacho.engine.kv.BlockHasher;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvGroup;
import dev.tacho.engine.kv.PrefixHashAlgorithm;
import dev.tacho.engine.kv.PrefixHashes;
import dev.tacho.engine.kv.SequenceBlocks;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** A prompt of 32,768 tokens that is in the prefix cache: nanoseconds a block of 16 to hash it and to look it up. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class PrefixLookupBenchmark {
  private static final int BLOCK = 16;
  private static final int BLOCKS = 2048;

  /** Hash of full blocks. */
  @Param({"SHA256", "XXHASH"})
  PrefixHashAlgorithm hash;

  private final int[] tokens = new SplittableRandom(1).ints(BLOCK * BLOCKS + 1, 0, 128_000).toArray();
  private final SequenceBlocks sequence = new SequenceBlocks(new PrefixHashes("", ""));
  private BlockHasher hasher;
  private BlockAllocator blocks;

  /** Computes the prompt once. */
  @Setup
  public void setUp() {
    hasher = hash.newHasher(BLOCK);
    sequence.hashes().extend(hasher, tokens, tokens.length);
    KvBlockPool pool = new KvBlockPool(4 * BLOCKS, BLOCK, true);
    blocks = new BlockAllocator(pool, List.of(KvGroup.full()), tokens.length, tokens.length, 0, true);
    blocks.open(sequence);
    blocks.lookup(sequence, tokens.length);
    if (!blocks.admit(sequence, tokens.length, tokens.length, tokens.length, false)) {
      throw new IllegalStateException("the pool has room for the prompt");
    }
  }

  /** Hashes the prompt into a new list. */
  @Benchmark
  @OperationsPerInvocation(BLOCKS)
  public int hashes() {
    PrefixHashes hashes = new PrefixHashes("", "");
    hashes.extend(hasher, tokens, tokens.length);
    return hashes.size();
  }

  /** Finds all of it. */
  @Benchmark
  @OperationsPerInvocation(BLOCKS)
  public int lookup() {
    return blocks.lookup(sequence, tokens.length);
  }
}
