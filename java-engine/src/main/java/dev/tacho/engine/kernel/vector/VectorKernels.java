package dev.tacho.engine.kernel.vector;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.ArgumentChecks;
import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kernel.OperationCost;
import dev.tacho.engine.kernel.RopePairing;
import dev.tacho.engine.kernel.Weight;
import dev.tacho.engine.kernel.scalar.ScalarKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * The operations on the JVM's Vector API, in float32. What only moves elements or turns pairs (rope, kv_write,
 * kv_copy_blocks) is left to the scalar kernels: vectors would gain nothing there.
 *
 * <p>Before the JIT has compiled a method, vectors are objects and many times slower than scalars, and each call
 * allocates; after that, nothing is allocated. Stateless, safe for any number of threads.
 */
final class VectorKernels implements Kernels {
  private final ScalarKernels scalar = new ScalarKernels();

  /** Bits of the vectors in use. */
  int vectorBits() {
    return Lanes.FLOATS.vectorBitSize();
  }

  @Override
  public String id() {
    return VectorKernelProvider.ID;
  }

  @Override
  public String description() {
    return VectorKernelProvider.ID + " " + vectorBits() + " bit";
  }

  @Override
  public long weightBytes(DType dtype, int n, int k) {
    return VectorWeights.bytes(dtype, n, k);
  }

  @Override
  public MemorySegment allocate(Arena arena, long bytes) {
    return scalar.allocate(arena, bytes);
  }

  private static long weightBytes(Weight weight) {
    return VectorWeights.bytes(weight.dtype(), weight.n(), weight.k());
  }

  @Override
  public void weightPack(Weight weight, MemorySegment source, int begin, int end, KernelWorker worker) {
    ArgumentChecks.weightPack(weight, weightBytes(weight), source, begin, end);
    for (int panel = begin; panel < end; panel++) {
      VectorWeights.pack(weight, source, panel);
    }
    OperationCost.weightPack(weight, begin, end, worker);
  }

  @Override
  public void embeddingLookup(
      Weight table, MemorySegment ids, int m, MemorySegment y, int ldy, int begin, int end, KernelWorker worker) {
    ArgumentChecks.embeddingLookup(table, weightBytes(table), ids, m, y, ldy, begin, end);
    for (int i = begin; i < end; i++) {
      int row = ids.getAtIndex(JAVA_INT, i);
      for (int j = 0; j < table.k(); j++) {
        y.setAtIndex(JAVA_FLOAT, (long) i * ldy + j, VectorWeights.get(table, row, j));
      }
    }
    OperationCost.embeddingLookup(table, begin, end, worker);
  }

  @Override
  public ActivationFormat activationFormat(DType weights) {
    return scalar.activationFormat(weights);
  }

  @Override
  public long activationRowBytes(ActivationFormat format, int k) {
    return VectorActivations.rowBytes(format, k);
  }

  @Override
  public void activationPack(
      MemorySegment x, int ldx, int m, ActivationRows packed, int begin, int end, KernelWorker worker) {
    ArgumentChecks.activationPack(x, ldx, m, packed, VectorActivations.rowBytes(packed), begin, end);
    for (int i = 0; i < m; i++) {
      for (int block = begin; block < end; block++) {
        int first = block * ACTIVATION_BLOCK;
        int count = Math.min(ACTIVATION_BLOCK, packed.k() - first);
        VectorActivations.put(x, ((long) i * ldx + first) * Float.BYTES, packed, i, block, count);
      }
    }
    OperationCost.activationPack(packed.k(), m, begin, end, worker);
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
    ActivationFormat format = activationFormat(w.dtype());
    ArgumentChecks.matmul(
        w, weightBytes(w), bias, x, format, VectorActivations.rowBytes(x), m, y, ldy, begin, end);
    ArgumentChecks.writable("scratch", worker.scratch(), VectorInt8Matmul.SCRATCH_BYTES, Float.BYTES);
    if (format == ActivationFormat.INT8) {
      for (int panel = begin; panel < end; panel += VectorInt8Matmul.PANELS) {
        int panels = Math.min(VectorInt8Matmul.PANELS, end - panel);
        VectorInt8Matmul.panels(w, panel, panels, bias, x, m, y, ldy, accumulate, worker.scratch());
      }
    } else {
      for (int panel = begin; panel < end; panel++) {
        VectorMatmul.panel(w, panel, bias, x, m, y, ldy, accumulate, worker.scratch());
      }
    }
    OperationCost.matmul(w, m, accumulate, begin, end, worker);
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
    ArgumentChecks.rmsNorm(x, ldx, weight, epsilon, m, y, VectorActivations.rowBytes(y), begin, end);
    MemorySegment scratch = worker.scratch();
    int n = y.k();
    for (int i = begin; i < end; i++) {
      long xAt = (long) i * ldx * Float.BYTES;
      float squares = VectorRows.squares(x, xAt, n, scratch);
      float factor = (float) (1 / Math.sqrt((double) squares / n + epsilon));
      for (int first = 0; first < n; first += ACTIVATION_BLOCK) {
        int count = Math.min(ACTIVATION_BLOCK, n - first);
        long at = (long) first * Float.BYTES;
        VectorRows.scale(x, xAt + at, factor, weight, at, count, scratch, 0);
        VectorActivations.put(scratch, 0, y, i, first / ACTIVATION_BLOCK, count);
      }
    }
    OperationCost.rmsNorm(n, begin, end, worker);
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
    scalar.rope(pairing, ropeDim, cosSin, tokens, numHeads, headDim, x, ldx, begin, end, worker);
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
    scalar.kvWrite(cache, slots, tokens, k, ldk, v, ldv, begin, end, worker);
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
    long scratchBytes = attentionScratchBytes(shape);
    ArgumentChecks.attention(shape, cache, batch, q, ldq, out, ldo, begin, end, worker, scratchBytes);
    for (int item = begin; item < end; item++) {
      VectorAttention.item(shape, cache, batch, item, q, ldq, out, ldo, worker.scratch());
    }
    OperationCost.attention(shape, cache, batch, begin, end, worker);
  }

  @Override
  public long attentionScratchBytes(AttentionShape shape) {
    return VectorAttention.scratchBytes(shape.headDim());
  }

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
    scalar.kvCopyBlocks(caches, blockBytes, numBlocks, pairs, numPairs, begin, end, worker);
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
    ArgumentChecks.siluMul(gate, ldGate, up, ldUp, m, y, VectorActivations.rowBytes(y), begin, end);
    MemorySegment product = worker.scratch();
    int last = Math.min(end * ACTIVATION_BLOCK, y.k());
    for (int i = 0; i < m; i++) {
      long gateRow = (long) i * ldGate;
      long upRow = (long) i * ldUp;
      for (int first = begin * ACTIVATION_BLOCK; first < last; first += VectorRows.SILU_RUN) {
        int run = Math.min(VectorRows.SILU_RUN, last - first);
        VectorRows.siluMul(gate, (gateRow + first) * Float.BYTES, up, (upRow + first) * Float.BYTES, run, product);
        for (int at = 0; at < run; at += ACTIVATION_BLOCK) {
          int count = Math.min(ACTIVATION_BLOCK, run - at);
          VectorActivations.put(product, (long) at * Float.BYTES, y, i, (first + at) / ACTIVATION_BLOCK, count);
        }
      }
    }
    OperationCost.siluMul(y.k(), m, begin, end, worker);
  }
}
