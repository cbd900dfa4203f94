package dev.tacho.engine.model;

import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.parallel.TeamMember;
import dev.tacho.engine.sampling.Sampler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * What one member of the team brings to every step: its kernel worker, its sampler, and its share of the columns and
 * heads, which depends on the model and the team's size alone. The views of the activations begin at the member's
 * first head. Made by the member itself, so that its scratch lies near its core; used by no other thread.
 */
final class MemberState {
  private final KernelWorker worker;
  private final Sampler sampler;
  private final Range embeddingGroups;
  private final Range feedForwardGroups;
  private final Range feedForwardBlocks;
  private final Range attendedBlocks;
  private final Range vocabularyGroups;
  private final Range queryGroups;
  private final Range keyGroups;
  private final Range valueGroups;
  private final Range kvHeads;
  private final MemorySegment queryHeads;
  private final MemorySegment keyHeads;

  /**
   * A range of work items.
   *
   * @param begin the first
   * @param end the one after the last
   */
  record Range(int begin, int end) {
    static Range of(TeamMember member, int items) {
      return new Range(member.begin(items), member.end(items));
    }

    int size() {
      return end - begin;
    }

    boolean isEmpty() {
      return begin >= end;
    }

    /** The part that lies in {@code [first, first + items)}, counted from first. */
    Range within(int first, int items) {
      return new Range(Math.clamp(begin - first, 0, items), Math.clamp(end - first, 0, items));
    }
  }

  /**
   * @param arena owns worker scratch
   * @param member whose state this is
   * @param config of the model
   * @param kernels say how much scratch they need
   * @param activations to be viewed
   */
  MemberState(Arena arena, TeamMember member, ModelConfig config, Kernels kernels, Activations activations) {
    worker = new KernelWorker(arena, kernels.attentionScratchBytes(config.attentionShape()));
    sampler = new Sampler(config.vocabSize());
    embeddingGroups = Range.of(member, groups(config.embeddingLength()));
    feedForwardBlocks = Range.of(member, blocks(config.feedForwardLength()));
    feedForwardGroups = groupsOf(feedForwardBlocks, config.feedForwardLength());
    attendedBlocks = Range.of(member, blocks(config.queryLength()));
    vocabularyGroups = Range.of(member, groups(config.vocabSize()));
    int queries = groups(config.queryLength());
    int keys = groups(config.keyValueLength());
    Range oneAfterTheOther = Range.of(member, queries + keys + keys);
    queryGroups = oneAfterTheOther.within(0, queries);
    keyGroups = oneAfterTheOther.within(queries, keys);
    valueGroups = oneAfterTheOther.within(queries + keys, keys);
    kvHeads = Range.of(member, config.kvHeads());
    int queriesPerKey = config.heads() / config.kvHeads();
    queryHeads = fromColumn(activations.query(), kvHeads.begin() * queriesPerKey * config.headDim());
    keyHeads = fromColumn(activations.key(), kvHeads.begin() * config.headDim());
  }

  /** Groups of columns of a matmul with n outputs. */
  static int groups(int n) {
    return Math.ceilDiv(n, Kernels.ROW_GROUP);
  }

  /** Blocks of columns of an activation pack of rows of k. */
  private static int blocks(int k) {
    return Math.ceilDiv(k, Kernels.ACTIVATION_BLOCK);
  }

  /** The groups of columns that make whole blocks, so that their member can pack what it has computed itself. */
  private static Range groupsOf(Range blocks, int n) {
    int groups = Kernels.ACTIVATION_BLOCK / Kernels.ROW_GROUP;
    return new Range(Math.min(blocks.begin() * groups, groups(n)), Math.min(blocks.end() * groups, groups(n)));
  }

  private static MemorySegment fromColumn(MemorySegment matrix, int column) {
    return matrix.asSlice(Math.min((long) column * Float.BYTES, matrix.byteSize()));
  }

  /** Counters and scratch. */
  KernelWorker worker() {
    return worker;
  }

  /** From logits to a token. */
  Sampler sampler() {
    return sampler;
  }

  /** The member's groups of the columns of a hidden state. */
  Range embeddingGroups() {
    return embeddingGroups;
  }

  /** The member's groups of feed-forward columns. */
  Range feedForwardGroups() {
    return feedForwardGroups;
  }

  /** The same columns as blocks of packed activations. */
  Range feedForwardBlocks() {
    return feedForwardBlocks;
  }

  /** The member's blocks of columns of what attention gives. */
  Range attendedBlocks() {
    return attendedBlocks;
  }

  /** The member's groups of logits. */
  Range vocabularyGroups() {
    return vocabularyGroups;
  }

  /** The member's groups of query columns; with those of key and value its even share of all three. */
  Range queryGroups() {
    return queryGroups;
  }

  /** The member's groups of key columns. */
  Range keyGroups() {
    return keyGroups;
  }

  /** The member's groups of value columns. */
  Range valueGroups() {
    return valueGroups;
  }

  /** The member's kv heads; the query heads that read them are its own too. */
  Range kvHeads() {
    return kvHeads;
  }

  /** The queries from the first head that reads the member's kv heads. */
  MemorySegment queryHeads() {
    return queryHeads;
  }

  /** The keys from the member's first kv head. */
  MemorySegment keyHeads() {
    return keyHeads;
  }
}
