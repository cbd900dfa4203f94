package dev.tacho.engine.kernel;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * The operations of a model step. Every provider (scalar, vector, native) gives the same results within the
 * tolerance of the contract test; scalar is the oracle.
 *
 * <p>Rules for all operations:
 *
 * <ul>
 *   <li>{@code [begin, end)} is a range of the operation's work items, said at each. Disjoint ranges may run at the
 *       same time on different threads; the split never changes a result.
 *   <li>The worker is the calling thread's own: its counter lines get the work done, its scratch is free to use.
 *   <li>Segments are off-heap, float32 row-major unless said otherwise; {@code ld} is the distance of two rows in
 *       elements. Memory outside the shapes is neither read nor written.
 *   <li>No lock is taken and no thread is started. Nothing is allocated, but by {@link #weightPack}, run at load.
 *   <li>A size that does not fit its segment is an {@link IllegalArgumentException} before anything is computed.
 *   <li>The result of one row or sequence does not depend on the others in the call, bit by bit.
 * </ul>
 */
public interface Kernels {
  /** Items of weights and of matmul: groups of this many rows of the weight (columns of y). */
  int ROW_GROUP = 16;

  /** Items of {@link #activationPack} and {@link #siluMul}: blocks of this many columns. */
  int ACTIVATION_BLOCK = 32;

  /** The option word: {@code scalar}, {@code vector}, {@code native} or {@code cuda}. */
  String id();

  /** For the log line: what exactly runs, e.g. {@code native avx512_bf16}. */
  String description();

  /** Bytes of a packed [n][k] matrix. */
  long weightBytes(DType dtype, int n, int k);

  /**
   * Zeros for packed weights or a KV cache, aligned to 64 bytes, which live as long as the arena. In large pages where
   * that makes kernels faster.
   *
   * @throws OutOfMemoryError if they are not to be had
   */
  MemorySegment allocate(Arena arena, long bytes);

  /** Packs {@code source}, [n][k] in file layout (any alignment), into {@code weight}. Items: groups of 16 rows. */
  void weightPack(Weight weight, MemorySegment source, int begin, int end, KernelWorker worker);

  /** y[i][] = row ids[i] of the table. Items: rows of y. {@code ids} int32 [m], each in [0, n). */
  void embeddingLookup(
      Weight table, MemorySegment ids, int m, MemorySegment y, int ldy, int begin, int end, KernelWorker worker);

  /** The form in which a matmul with weights of a type reads activations; INT8 for every quantised type. */
  ActivationFormat activationFormat(DType weights);

  /** Bytes of a row of k activations in a form; k is whole blocks of it. */
  long activationRowBytes(ActivationFormat format, int k);

  /**
   * Writes m rows of floats in the form that matmuls read, once for all of these.
   *
   * <p>INT8: for each 32 elements scale = max|x| / 127 and codes x * (127 / max|x|) rounded to nearest even, the same
   * for every provider. Where max|x| is below 2^-119 all are 0; where an element is not finite the scale is NaN, so
   * that the row's products are NaN and never a plausible number.
   *
   * <p>Items: blocks of 32 columns, {@code ceil(k / 32)}.
   */
  void activationPack(
      MemorySegment x, int ldx, int m, ActivationRows packed, int begin, int end, KernelWorker worker);

  /**
   * y[m][n] = x[m][k] * w[n][k] transposed, plus bias[n] if there is one, plus what y holds if {@code accumulate}.
   * Items: groups of 16 columns of y, {@code ceil(n / 16)}. {@code x} has the form {@link #activationFormat} of the
   * weight's type.
   */
  void matmul(
      Weight w,
      @Nullable MemorySegment bias,
      ActivationRows x,
      int m,
      MemorySegment y,
      int ldy,
      boolean accumulate,
      int begin,
      int end,
      KernelWorker worker);

  /**
   * y[i][j] = x[i][j] / sqrt(mean_j x[i][j]^2 + epsilon) * weight[j], in the form of y, as {@link #activationPack}
   * would write it; plain floats may be x itself. Items: rows, m of y.k() elements.
   */
  void rmsNorm(
      MemorySegment x,
      int ldx,
      MemorySegment weight,
      float epsilon,
      int m,
      ActivationRows y,
      int begin,
      int end,
      KernelWorker worker);

  /**
   * Turns, in place, the pairs (a, b) of the first ropeDim elements of each head into (a cos - b sin, a sin + b cos).
   * Items: tokens. {@code cosSin} is [tokens][ropeDim / 2][2], {@code x} [tokens][ldx] with numHeads heads of headDim.
   */
  void rope(
      RopePairing pairing,
      int ropeDim,
      MemorySegment cosSin,
      int tokens,
      int numHeads,
      int headDim,
      MemorySegment x,
      int ldx,
      int begin,
      int end,
      KernelWorker worker);

  /**
   * Writes K and V rows into their slots; {@code slots} int64 [tokens], slot = block * 16 + position % 16, -1 is
   * skipped. Items: kv heads.
   */
  void kvWrite(
      KvCacheLayer cache,
      MemorySegment slots,
      int tokens,
      MemorySegment k,
      int ldk,
      MemorySegment v,
      int ldv,
      int begin,
      int end,
      KernelWorker worker);

  /**
   * Causal attention of a batch in which prefill chunks and decodes are mixed, over paged KV. Items: those that the
   * batch has planned; a tile that is cut into several is written to {@code out} when the last of them has run. {@code
   * q} and {@code out} are [tokens of the batch][ld], heads side by side.
   */
  void attention(
      AttentionShape shape,
      KvCacheLayer cache,
      AttentionBatch batch,
      MemorySegment q,
      int ldq,
      MemorySegment out,
      int ldo,
      int begin,
      int end,
      KernelWorker worker);

  /**
   * Copies block pairs[2i] to block pairs[2i + 1] in each cache of {@code caches}; {@code pairs} int64
   * [numPairs][2]. No destination is a source or destination of another pair. Items: caches * pairs, pair fastest.
   */
  void kvCopyBlocks(
      MemorySegment[] caches,
      long blockBytes,
      int numBlocks,
      MemorySegment pairs,
      int numPairs,
      int begin,
      int end,
      KernelWorker worker);

  /**
   * y = gate / (1 + exp(-gate)) * up, in the form of y, as {@link #activationPack} would write it; plain floats may be
   * gate or up itself. Items: blocks of 32 columns, {@code ceil(y.k() / 32)}, of m rows.
   */
  void siluMul(
      MemorySegment gate,
      int ldGate,
      MemorySegment up,
      int ldUp,
      int m,
      ActivationRows y,
      int begin,
      int end,
      KernelWorker worker);

  /** Bytes of scratch that a worker needs for attention of this shape. */
  long attentionScratchBytes(AttentionShape shape);
}
