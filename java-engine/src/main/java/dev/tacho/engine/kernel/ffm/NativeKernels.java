package dev.tacho.engine.kernel.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.ArgumentChecks;
import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.kernel.RopePairing;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * The operations of the native library. Each call checks its arguments here, before a pointer crosses: a wrong size is
 * an exception and never a crash of the JVM. Then it writes a params struct into the worker's own memory, calls, and
 * turns the status into an exception: {@link IllegalArgumentException} for what the library refuses, {@link
 * UnsupportedException} for what this CPU or build lacks, {@link NativeException} for the rest.
 *
 * <p>Addresses inside the structs do not keep their memory alive: the caller closes no arena while a call runs.
 * Stateless apart from the instruction set, and safe for any number of threads. The library adds to the counter lines
 * itself.
 */
public final class NativeKernels implements Kernels {
  static final String ID = "native";

  private static final long TEXT_BYTES = 1024;

  private final InstructionSet instructionSet;
  private final int isa;
  private final String description;
  private final ActivationFormat[] formats = new ActivationFormat[DType.values().length];

  private NativeKernels(InstructionSet instructionSet) {
    this.instructionSet = instructionSet;
    isa = instructionSet.id();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocate(TEXT_BYTES);
      check("tacho_build_info", NativeFunctions.buildInfo(text, TEXT_BYTES));
      MemorySegment format = arena.allocate(JAVA_INT);
      for (DType dtype : DType.values()) {
        check("tacho_activation_format", NativeFunctions.activationFormat(isa, dtype.id(), format));
        formats[dtype.ordinal()] = ActivationFormat.of(format.get(JAVA_INT, 0));
      }
      description = ID + " " + instructionSet.word() + " (" + text.getString(0) + ")";
    }
  }

  /**
   * Kernels of exactly one instruction set. The library must be loaded.
   *
   * @throws UnsupportedException if the CPU lacks it, with the missing features
   */
  static NativeKernels of(InstructionSet instructionSet) {
    check("instruction set " + instructionSet.word(), NativeFunctions.isaCheck(instructionSet.id()));
    return new NativeKernels(instructionSet);
  }

  /**
   * Kernels of the best instruction set up to a limit. The library must be loaded.
   *
   * @param maxIsa an {@link InstructionSet#word()}; empty for no limit
   * @throws UnsupportedException if the word is another one
   */
  static NativeKernels upTo(String maxIsa) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment resolved = arena.allocate(JAVA_INT);
      int status = NativeFunctions.isaResolve(arena.allocateFrom(maxIsa), resolved);
      if (status == NativeAbi.EINVAL) {
        String words = "it must be " + InstructionSet.words() + ", or not set";
        throw new UnsupportedException(NativeKernelProvider.MAX_ISA_VARIABLE + "=" + maxIsa, words);
      }
      check("tacho_isa_resolve", status);
      return new NativeKernels(InstructionSet.of(resolved.get(JAVA_INT, 0)));
    }
  }

  /** The instruction set in use. */
  public InstructionSet instructionSet() {
    return instructionSet;
  }

  @Override
  public String id() {
    return ID;
  }

  @Override
  public String description() {
    return description;
  }

  private static void check(String what, int status) {
    if (status != NativeAbi.OK) {
      throw failure(what, status);
    }
  }

  private static RuntimeException failure(String what, int status) {
    String detail;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocate(TEXT_BYTES);
      int read = NativeFunctions.lastError(text, TEXT_BYTES);
      detail = read == NativeAbi.OK ? text.getString(0) : "";
    }
    return switch (status) {
      case NativeAbi.EINVAL -> new IllegalArgumentException(detail);
      case NativeAbi.EUNSUPPORTED -> new UnsupportedException(what, detail);
      default ->
          new NativeException(
              what, status, NativeAbi.text(NativeFunctions.statusString(status), TEXT_BYTES), detail);
    };
  }

  /** The worker's params memory as a struct of {@code layout}, its two common members written. */
  private MemorySegment params(KernelWorker worker, MemoryLayout layout) {
    MemorySegment params = worker.params();
    params.set(JAVA_INT, NativeStructs.STRUCT_SIZE, (int) layout.byteSize());
    params.set(JAVA_INT, NativeStructs.ISA, isa);
    return params;
  }

  @Override
  public long weightBytes(DType dtype, int n, int k) {
    try (Arena arena = Arena.ofConfined()) {
      return weightBytes(dtype, n, k, arena.allocate(JAVA_LONG));
    }
  }

  /** From the system and not from the heap of C: in huge pages, which only memory that is new can become. */
  @Override
  public MemorySegment allocate(Arena arena, long bytes) {
    try (Arena call = Arena.ofConfined()) {
      MemorySegment mapped = call.allocate(ADDRESS);
      int status = NativeFunctions.memoryMap(bytes, mapped);
      if (status == NativeAbi.EINTERNAL) {
        throw new OutOfMemoryError(failure("tacho_memory_map", status).getMessage());
      }
      check("tacho_memory_map", status);
      return mapped
          .get(ADDRESS, 0)
          .reinterpret(bytes, arena, memory -> check("tacho_memory_unmap", NativeFunctions.memoryUnmap(memory, bytes)));
    }
  }

  private long weightBytes(DType dtype, int n, int k, MemorySegment result) {
    ArgumentChecks.weightShape(dtype, n, k);
    check("tacho_weight_bytes", NativeFunctions.weightBytes(isa, dtype.id(), n, k, result));
    return result.get(JAVA_LONG, 0);
  }

  private long weightBytes(Weight weight, KernelWorker worker) {
    return weightBytes(weight.dtype(), weight.n(), weight.k(), worker.params());
  }

  @Override
  public long attentionScratchBytes(AttentionShape shape) {
    try (Arena arena = Arena.ofConfined()) {
      return attentionScratchBytes(shape, arena.allocate(JAVA_LONG));
    }
  }

  private long attentionScratchBytes(AttentionShape shape, MemorySegment result) {
    int status =
        NativeFunctions.attentionScratch(isa, shape.numHeads(), shape.numKvHeads(), shape.headDim(), result);
    check("tacho_attention_scratch", status);
    return Math.multiplyExact(result.get(JAVA_LONG, 0), Float.BYTES);
  }

  @Override
  public void weightPack(Weight weight, MemorySegment source, int begin, int end, KernelWorker worker) {
    ArgumentChecks.weightPack(weight, weightBytes(weight, worker), source, begin, end);
    MemorySegment params = params(worker, NativeStructs.WeightPack.LAYOUT);
    params.set(JAVA_INT, NativeStructs.WeightPack.DTYPE, weight.dtype().id());
    params.set(JAVA_INT, NativeStructs.WeightPack.RESERVED, 0);
    params.set(JAVA_LONG, NativeStructs.WeightPack.N, weight.n());
    params.set(JAVA_LONG, NativeStructs.WeightPack.K, weight.k());
    params.set(ADDRESS, NativeStructs.WeightPack.SOURCE, source);
    params.set(ADDRESS, NativeStructs.WeightPack.PACKED, weight.data());
    MemorySegment line = worker.line(Operation.WEIGHT_PACK);
    check("tacho_weight_pack", NativeFunctions.weightPack(params, begin, end, line));
  }

  @Override
  public void embeddingLookup(
      Weight table, MemorySegment ids, int m, MemorySegment y, int ldy, int begin, int end, KernelWorker worker) {
    ArgumentChecks.embeddingLookup(table, weightBytes(table, worker), ids, m, y, ldy, begin, end);
    MemorySegment params = params(worker, NativeStructs.EmbeddingLookup.LAYOUT);
    params.set(JAVA_INT, NativeStructs.EmbeddingLookup.DTYPE, table.dtype().id());
    params.set(JAVA_INT, NativeStructs.EmbeddingLookup.RESERVED, 0);
    params.set(JAVA_LONG, NativeStructs.EmbeddingLookup.M, m);
    params.set(JAVA_LONG, NativeStructs.EmbeddingLookup.N, table.n());
    params.set(JAVA_LONG, NativeStructs.EmbeddingLookup.K, table.k());
    params.set(JAVA_LONG, NativeStructs.EmbeddingLookup.LDY, ldy);
    params.set(ADDRESS, NativeStructs.EmbeddingLookup.IDS, ids);
    params.set(ADDRESS, NativeStructs.EmbeddingLookup.W, table.data());
    params.set(ADDRESS, NativeStructs.EmbeddingLookup.Y, y);
    MemorySegment line = worker.line(Operation.EMBEDDING_LOOKUP);
    check("tacho_embedding_lookup", NativeFunctions.embeddingLookup(params, begin, end, line));
  }

  @Override
  public ActivationFormat activationFormat(DType weights) {
    return formats[weights.ordinal()];
  }

  @Override
  public long activationRowBytes(ActivationFormat format, int k) {
    try (Arena arena = Arena.ofConfined()) {
      return activationRowBytes(format, k, arena.allocate(JAVA_LONG));
    }
  }

  private long activationRowBytes(ActivationFormat format, int k, MemorySegment result) {
    ArgumentChecks.activationShape(format, k);
    check("tacho_activation_bytes", NativeFunctions.activationBytes(isa, format.id(), k, result));
    return result.get(JAVA_LONG, 0);
  }

  private long rowBytes(ActivationRows rows, KernelWorker worker) {
    return activationRowBytes(rows.format(), rows.k(), worker.params());
  }

  @Override
  public void activationPack(
      MemorySegment x, int ldx, int m, ActivationRows packed, int begin, int end, KernelWorker worker) {
    ArgumentChecks.activationPack(x, ldx, m, packed, rowBytes(packed, worker), begin, end);
    MemorySegment params = params(worker, NativeStructs.ActivationPack.LAYOUT);
    params.set(JAVA_INT, NativeStructs.ActivationPack.FORMAT, packed.format().id());
    params.set(JAVA_INT, NativeStructs.ActivationPack.RESERVED, 0);
    params.set(JAVA_LONG, NativeStructs.ActivationPack.M, m);
    params.set(JAVA_LONG, NativeStructs.ActivationPack.K, packed.k());
    params.set(JAVA_LONG, NativeStructs.ActivationPack.LDX, ldx);
    params.set(JAVA_LONG, NativeStructs.ActivationPack.ROW_BYTES, packed.rowBytes());
    params.set(ADDRESS, NativeStructs.ActivationPack.X, x);
    params.set(ADDRESS, NativeStructs.ActivationPack.PACKED, packed.data());
    MemorySegment line = worker.line(Operation.ACTIVATION_PACK);
    check("tacho_activation_pack", NativeFunctions.activationPack(params, begin, end, line));
  }

  @Override
  public void matmul(
      Weight w,
      @Nullable MemorySegment bias,
      ActivationRows x,
      int m,
      MemorySegment y,
      int ldy,
      boolean accumulate,
      int begin,
      int end,
      KernelWorker worker) {
    long rowBytes = rowBytes(x, worker);
    ArgumentChecks.matmul(
        w, weightBytes(w, worker), bias, x, activationFormat(w.dtype()), rowBytes, m, y, ldy, begin, end);
    MemorySegment params = params(worker, NativeStructs.Matmul.LAYOUT);
    params.set(JAVA_INT, NativeStructs.Matmul.DTYPE, w.dtype().id());
    params.set(JAVA_INT, NativeStructs.Matmul.ACCUMULATE, accumulate ? 1 : 0);
    params.set(JAVA_LONG, NativeStructs.Matmul.M, m);
    params.set(JAVA_LONG, NativeStructs.Matmul.N, w.n());
    params.set(JAVA_LONG, NativeStructs.Matmul.K, w.k());
    params.set(JAVA_LONG, NativeStructs.Matmul.X_ROW_BYTES, x.rowBytes());
    params.set(JAVA_LONG, NativeStructs.Matmul.LDY, ldy);
    params.set(ADDRESS, NativeStructs.Matmul.X, x.data());
    params.set(ADDRESS, NativeStructs.Matmul.W, w.data());
    params.set(ADDRESS, NativeStructs.Matmul.BIAS, bias == null ? MemorySegment.NULL : bias);
    params.set(ADDRESS, NativeStructs.Matmul.Y, y);
    check("tacho_matmul", NativeFunctions.matmul(params, begin, end, worker.line(Operation.MATMUL)));
  }

  @Override
  public void rmsNorm(
      MemorySegment x,
      int ldx,
      MemorySegment weight,
      float epsilon,
      int m,
      ActivationRows y,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.rmsNorm(x, ldx, weight, epsilon, m, y, rowBytes(y, worker), begin, end);
    MemorySegment params = params(worker, NativeStructs.RmsNorm.LAYOUT);
    params.set(JAVA_LONG, NativeStructs.RmsNorm.M, m);
    params.set(JAVA_LONG, NativeStructs.RmsNorm.N, y.k());
    params.set(JAVA_LONG, NativeStructs.RmsNorm.LDX, ldx);
    params.set(JAVA_LONG, NativeStructs.RmsNorm.Y_ROW_BYTES, y.rowBytes());
    params.set(ADDRESS, NativeStructs.RmsNorm.X, x);
    params.set(ADDRESS, NativeStructs.RmsNorm.WEIGHT, weight);
    params.set(ADDRESS, NativeStructs.RmsNorm.Y, y.data());
    params.set(JAVA_FLOAT, NativeStructs.RmsNorm.EPSILON, epsilon);
    params.set(JAVA_INT, NativeStructs.RmsNorm.FORMAT, y.format().id());
    check("tacho_rms_norm", NativeFunctions.rmsNorm(params, begin, end, worker.line(Operation.RMS_NORM)));
  }

  @Override
  public void rope(
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
      KernelWorker worker) {
    ArgumentChecks.rope(ropeDim, cosSin, tokens, numHeads, headDim, x, ldx, begin, end);
    MemorySegment params = params(worker, NativeStructs.Rope.LAYOUT);
    int number =
        switch (pairing) {
          case ADJACENT -> NativeAbi.ROPE_ADJACENT;
          case HALVES -> NativeAbi.ROPE_HALVES;
        };
    params.set(JAVA_INT, NativeStructs.Rope.PAIRING, number);
    params.set(JAVA_INT, NativeStructs.Rope.NUM_HEADS, numHeads);
    params.set(JAVA_INT, NativeStructs.Rope.HEAD_DIM, headDim);
    params.set(JAVA_INT, NativeStructs.Rope.ROPE_DIM, ropeDim);
    params.set(JAVA_LONG, NativeStructs.Rope.NUM_TOKENS, tokens);
    params.set(JAVA_LONG, NativeStructs.Rope.LDX, ldx);
    params.set(ADDRESS, NativeStructs.Rope.COS_SIN, cosSin);
    params.set(ADDRESS, NativeStructs.Rope.X, x);
    check("tacho_rope", NativeFunctions.rope(params, begin, end, worker.line(Operation.ROPE)));
  }

  @Override
  public void kvWrite(
      KvCacheLayer cache,
      MemorySegment slots,
      int tokens,
      MemorySegment k,
      int ldk,
      MemorySegment v,
      int ldv,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.kvWrite(cache, slots, tokens, k, ldk, v, ldv, begin, end);
    MemorySegment params = params(worker, NativeStructs.KvWrite.LAYOUT);
    params.set(JAVA_INT, NativeStructs.KvWrite.KV_DTYPE, cache.dtype().id());
    params.set(JAVA_INT, NativeStructs.KvWrite.NUM_KV_HEADS, cache.numKvHeads());
    params.set(JAVA_INT, NativeStructs.KvWrite.HEAD_DIM, cache.headDim());
    params.set(JAVA_INT, NativeStructs.KvWrite.RESERVED, 0);
    params.set(JAVA_LONG, NativeStructs.KvWrite.NUM_TOKENS, tokens);
    params.set(JAVA_LONG, NativeStructs.KvWrite.NUM_BLOCKS, cache.numBlocks());
    params.set(JAVA_LONG, NativeStructs.KvWrite.LDK, ldk);
    params.set(JAVA_LONG, NativeStructs.KvWrite.LDV, ldv);
    params.set(ADDRESS, NativeStructs.KvWrite.SLOTS, slots);
    params.set(ADDRESS, NativeStructs.KvWrite.K, k);
    params.set(ADDRESS, NativeStructs.KvWrite.V, v);
    params.set(ADDRESS, NativeStructs.KvWrite.K_CACHE, cache.k());
    params.set(ADDRESS, NativeStructs.KvWrite.V_CACHE, cache.v());
    check("tacho_kv_write", NativeFunctions.kvWrite(params, begin, end, worker.line(Operation.KV_WRITE)));
  }

  @Override
  public void attention(
      AttentionShape shape,
      KvCacheLayer cache,
      AttentionBatch batch,
      MemorySegment q,
      int ldq,
      MemorySegment out,
      int ldo,
      int begin,
      int end,
      KernelWorker worker) {
    long scratchBytes = attentionScratchBytes(shape, worker.params());
    ArgumentChecks.attention(shape, cache, batch, q, ldq, out, ldo, begin, end, worker, scratchBytes);
    MemorySegment sinks = shape.sinks();
    MemorySegment params = params(worker, NativeStructs.Attention.LAYOUT);
    params.set(JAVA_INT, NativeStructs.Attention.KV_DTYPE, cache.dtype().id());
    params.set(JAVA_INT, NativeStructs.Attention.NUM_HEADS, shape.numHeads());
    params.set(JAVA_INT, NativeStructs.Attention.NUM_KV_HEADS, shape.numKvHeads());
    params.set(JAVA_INT, NativeStructs.Attention.HEAD_DIM, shape.headDim());
    params.set(JAVA_INT, NativeStructs.Attention.WINDOW, shape.window());
    params.set(JAVA_INT, NativeStructs.Attention.RESERVED, 0);
    params.set(JAVA_FLOAT, NativeStructs.Attention.SCALE, shape.scale());
    params.set(JAVA_FLOAT, NativeStructs.Attention.SOFTCAP, shape.softcap());
    params.set(JAVA_LONG, NativeStructs.Attention.NUM_SEQUENCES, batch.numSequences());
    params.set(JAVA_LONG, NativeStructs.Attention.NUM_ITEMS, batch.numItems());
    params.set(JAVA_LONG, NativeStructs.Attention.NUM_BLOCKS, cache.numBlocks());
    params.set(JAVA_LONG, NativeStructs.Attention.LDQ, ldq);
    params.set(JAVA_LONG, NativeStructs.Attention.LDO, ldo);
    params.set(JAVA_LONG, NativeStructs.Attention.BLOCK_TABLE_STRIDE, batch.blockTableStride());
    params.set(ADDRESS, NativeStructs.Attention.Q_STARTS, batch.qStarts());
    params.set(ADDRESS, NativeStructs.Attention.CONTEXT_LENS, batch.contextLens());
    params.set(ADDRESS, NativeStructs.Attention.BLOCK_TABLE, batch.blockTable());
    params.set(ADDRESS, NativeStructs.Attention.ITEMS, batch.items());
    params.set(ADDRESS, NativeStructs.Attention.Q, q);
    params.set(ADDRESS, NativeStructs.Attention.K_CACHE, cache.k());
    params.set(ADDRESS, NativeStructs.Attention.V_CACHE, cache.v());
    params.set(ADDRESS, NativeStructs.Attention.SINKS, sinks == null ? MemorySegment.NULL : sinks);
    params.set(ADDRESS, NativeStructs.Attention.OUT, out);
    params.set(ADDRESS, NativeStructs.Attention.SCRATCH, worker.scratch());
    params.set(JAVA_LONG, NativeStructs.Attention.SCRATCH_FLOATS, worker.scratch().byteSize() / Float.BYTES);
    params.set(ADDRESS, NativeStructs.Attention.PARTIALS, batch.partials());
    params.set(JAVA_LONG, NativeStructs.Attention.NUM_PARTIALS, batch.numPartials());
    params.set(ADDRESS, NativeStructs.Attention.TICKETS, batch.tickets());
    params.set(JAVA_LONG, NativeStructs.Attention.NUM_TICKETS, batch.numTickets());
    check("tacho_attention", NativeFunctions.attention(params, begin, end, worker.line(Operation.ATTENTION)));
  }

  /** The table of cache addresses lies in the worker's scratch, which has room for {@code MIN_SCRATCH_BYTES / 8}. */
  @Override
  public void kvCopyBlocks(
      MemorySegment[] caches,
      long blockBytes,
      int numBlocks,
      MemorySegment pairs,
      int numPairs,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.kvCopyBlocks(caches, blockBytes, numBlocks, pairs, numPairs, begin, end);
    MemorySegment table = worker.scratch();
    ArgumentChecks.segment("scratch", table, caches.length * ADDRESS.byteSize(), ADDRESS.byteAlignment());
    for (int i = 0; i < caches.length; i++) {
      table.setAtIndex(ADDRESS, i, caches[i]);
    }
    MemorySegment params = params(worker, NativeStructs.KvCopyBlocks.LAYOUT);
    params.set(JAVA_LONG, NativeStructs.KvCopyBlocks.NUM_CACHES, caches.length);
    params.set(JAVA_LONG, NativeStructs.KvCopyBlocks.NUM_PAIRS, numPairs);
    params.set(JAVA_LONG, NativeStructs.KvCopyBlocks.NUM_BLOCKS, numBlocks);
    params.set(JAVA_LONG, NativeStructs.KvCopyBlocks.BLOCK_BYTES, blockBytes);
    params.set(ADDRESS, NativeStructs.KvCopyBlocks.CACHES, table);
    params.set(ADDRESS, NativeStructs.KvCopyBlocks.PAIRS, pairs);
    MemorySegment line = worker.line(Operation.KV_COPY_BLOCKS);
    check("tacho_kv_copy_blocks", NativeFunctions.kvCopyBlocks(params, begin, end, line));
  }

  @Override
  public void siluMul(
      MemorySegment gate,
      int ldGate,
      MemorySegment up,
      int ldUp,
      int m,
      ActivationRows y,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.siluMul(gate, ldGate, up, ldUp, m, y, rowBytes(y, worker), begin, end);
    MemorySegment params = params(worker, NativeStructs.SiluMul.LAYOUT);
    params.set(JAVA_INT, NativeStructs.SiluMul.FORMAT, y.format().id());
    params.set(JAVA_INT, NativeStructs.SiluMul.RESERVED, 0);
    params.set(JAVA_LONG, NativeStructs.SiluMul.M, m);
    params.set(JAVA_LONG, NativeStructs.SiluMul.N, y.k());
    params.set(JAVA_LONG, NativeStructs.SiluMul.LD_GATE, ldGate);
    params.set(JAVA_LONG, NativeStructs.SiluMul.LD_UP, ldUp);
    params.set(JAVA_LONG, NativeStructs.SiluMul.Y_ROW_BYTES, y.rowBytes());
    params.set(ADDRESS, NativeStructs.SiluMul.GATE, gate);
    params.set(ADDRESS, NativeStructs.SiluMul.UP, up);
    params.set(ADDRESS, NativeStructs.SiluMul.Y, y.data());
    check("tacho_silu_mul", NativeFunctions.siluMul(params, begin, end, worker.line(Operation.SILU_MUL)));
  }
}
