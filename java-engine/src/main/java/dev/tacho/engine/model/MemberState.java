package dev.tacho.engine.model;

import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.parallel.TeamMember;
import dev.tacho.engine.parallel.WorkShare;
import dev.tacho.engine.sampling.RowMaxima;
import dev.tacho.engine.sampling.Sampler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * What one member of the team brings to every step: its kernel worker, its sampler, and its share of the columns and
 * heads. The views of the activations begin at the member's first head. Made by the member itself, so that its scratch
 * lies near its core; used by no other thread, but for the maxima.
 */
final class MemberState {
  private final KernelWorker worker;
  private final Sampler sampler;
  private final RowMaxima maxima;
  private final MatmulInput ownRow;
  private final KernelWorker ownRowWorker;
  private final WorkShare share;
  private final Range attendedBlocks;
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
    maxima = new RowMaxima((int) (activations.logits().byteSize() / Float.BYTES / config.vocabSize()));
    ownRow = Activations.ownRow(arena, config, kernels);
    ownRowWorker = member.index() == 0 ? worker : new KernelWorker(arena, 0);
    share = new WorkShare(member);
    attendedBlocks = Range.of(member, blocks(config.queryLength()));
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
  static int blocks(int k) {
    return Math.ceilDiv(k, Kernels.ACTIVATION_BLOCK);
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

  /** The largest of the logits that the member has computed; other members read it behind the barrier. */
  RowMaxima maxima() {
    return maxima;
  }

  /** A normed row of the member's own, of a step or of its sampled tokens if that is a single one. */
  MatmulInput ownRow() {
    return ownRow;
  }

  /** For what every member does for its own row: counted of the first member alone, as the work of one. */
  KernelWorker ownRowWorker() {
    return ownRowWorker;
  }

  /** The member's part of the columns of matmuls. */
  WorkShare share() {
    return share;
  }

  /** The member's blocks of columns of what attention gives. */
  Range attendedBlocks() {
    return attendedBlocks;
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
