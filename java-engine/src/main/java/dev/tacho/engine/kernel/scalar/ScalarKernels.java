package dev.tacho.engine.kernel.scalar;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.ArgumentChecks;
import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.Int8Quantizer;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kernel.OperationCost;
import dev.tacho.engine.kernel.RopePairing;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * The operations in plain Java, clear before fast: the oracle of the contract test and the last resort of the
 * selection.
 *
 * <p>Elements are float32, but every sum over more than one element (dot products, norms, softmax, attention) is kept
 * in double, in ascending order, and rounded once at the end. That is nearer to the true value than any float32 order,
 * so a difference from another provider is that provider's error and not the oracle's. Weights stay as they lie in the
 * file. Stateless and safe for any number of threads.
 */
public final class ScalarKernels implements Kernels {
  static final String ID = "scalar";

  @Override
  public String id() {
    return ID;
  }

  @Override
  public String description() {
    return ID;
  }

  @Override
  public long weightBytes(DType dtype, int n, int k) {
    ArgumentChecks.weightShape(dtype, n, k);
    return Math.multiplyExact(n, dtype.bytes(k));
  }

  @Override
  public MemorySegment allocate(Arena arena, long bytes) {
    return arena.allocate(bytes, KernelWorker.LINE_BYTES);
  }

  private long weightBytes(Weight weight) {
    return weightBytes(weight.dtype(), weight.n(), weight.k());
  }

  @Override
  public void weightPack(Weight weight, MemorySegment source, int begin, int end, KernelWorker worker) {
    ArgumentChecks.weightPack(weight, weightBytes(weight), source, begin, end);
    long rowBytes = weight.dtype().bytes(weight.k());
    long from = (long) begin * ROW_GROUP * rowBytes;
    long to = Math.min((long) end * ROW_GROUP, weight.n()) * rowBytes;
    if (from < to) {
      MemorySegment.copy(source, from, weight.data(), from, to - from);
    }
    OperationCost.weightPack(weight, begin, end, worker);
  }

  @Override
  public void embeddingLookup(
      Weight table, MemorySegment ids, int m, MemorySegment y, int ldy, int begin, int end, KernelWorker worker) {
    ArgumentChecks.embeddingLookup(table, weightBytes(table), ids, m, y, ldy, begin, end);
    long rowBytes = table.dtype().bytes(table.k());
    for (int i = begin; i < end; i++) {
      long row = ids.getAtIndex(JAVA_INT, i) * rowBytes;
      for (int j = 0; j < table.k(); j++) {
        y.setAtIndex(JAVA_FLOAT, (long) i * ldy + j, Elements.get(table.dtype(), table.data(), row, j));
      }
    }
    OperationCost.embeddingLookup(table, begin, end, worker);
  }

  @Override
  public ActivationFormat activationFormat(DType weights) {
    return weights.blockElements() == 1 ? ActivationFormat.FLOAT32 : ActivationFormat.INT8;
  }

  @Override
  public long activationRowBytes(ActivationFormat format, int k) {
    ArgumentChecks.activationShape(format, k);
    return switch (format) {
      case FLOAT32 -> (long) k * Float.BYTES;
      case INT8 -> (long) k / Int8Quantizer.BLOCK * Int8Quantizer.BLOCK_BYTES;
      case BFLOAT16 -> throw new IllegalArgumentException("the scalar kernels multiply no " + format);
    };
  }

  private long rowBytes(ActivationRows rows) {
    return activationRowBytes(rows.format(), rows.k());
  }

  @Override
  public void activationPack(
      MemorySegment x, int ldx, int m, ActivationRows packed, int begin, int end, KernelWorker worker) {
    ArgumentChecks.activationPack(x, ldx, m, packed, rowBytes(packed), begin, end);
    for (int i = 0; i < m; i++) {
      for (int block = begin; block < end; block++) {
        long first = (long) block * ACTIVATION_BLOCK;
        long count = Math.min(ACTIVATION_BLOCK, packed.k() - first);
        put(x, ((long) i * ldx + first) * Float.BYTES, packed, i, block, count);
      }
    }
    OperationCost.activationPack(packed.k(), m, begin, end, worker);
  }

  /** Writes a block of floats into a row. */
  private static void put(MemorySegment x, long xAt, ActivationRows rows, int row, int block, long count) {
    long start = row * rows.rowBytes();
    if (rows.format() == ActivationFormat.INT8) {
      Int8Quantizer.quantize(x, xAt, rows.data(), start + (long) block * Int8Quantizer.BLOCK_BYTES);
    } else {
      long to = start + (long) block * ACTIVATION_BLOCK * Float.BYTES;
      MemorySegment.copy(x, xAt, rows.data(), to, count * Float.BYTES);
    }
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
    ArgumentChecks.matmul(
        w, weightBytes(w), bias, x, activationFormat(w.dtype()), rowBytes(x), m, y, ldy, begin, end);
    long rowBytes = w.dtype().bytes(w.k());
    int endRow = Math.min(end * ROW_GROUP, w.n());
    for (int row = begin * ROW_GROUP; row < endRow; row++) {
      double start = bias == null ? 0 : bias.getAtIndex(JAVA_FLOAT, row);
      for (int i = 0; i < m; i++) {
        double sum = start + RowDots.dot(w.dtype(), w.data(), row * rowBytes, x.data(), i * x.rowBytes(), w.k());
        long at = (long) i * ldy + row;
        float value = (float) sum;
        y.setAtIndex(JAVA_FLOAT, at, accumulate ? y.getAtIndex(JAVA_FLOAT, at) + value : value);
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
    ArgumentChecks.rmsNorm(x, ldx, weight, epsilon, m, y, rowBytes(y), begin, end);
    int n = y.k();
    MemorySegment normed = worker.scratch();
    for (int i = begin; i < end; i++) {
      long row = (long) i * ldx;
      double squares = 0;
      for (int j = 0; j < n; j++) {
        double value = x.getAtIndex(JAVA_FLOAT, row + j);
        squares += value * value;
      }
      double factor = 1 / Math.sqrt(squares / n + epsilon);
      for (int first = 0; first < n; first += ACTIVATION_BLOCK) {
        int count = Math.min(ACTIVATION_BLOCK, n - first);
        for (int j = 0; j < count; j++) {
          double value = x.getAtIndex(JAVA_FLOAT, row + first + j) * factor;
          normed.setAtIndex(JAVA_FLOAT, j, (float) (value * weight.getAtIndex(JAVA_FLOAT, first + j)));
        }
        put(normed, 0, y, i, first / ACTIVATION_BLOCK, count);
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
    ArgumentChecks.rope(ropeDim, cosSin, tokens, numHeads, headDim, x, ldx, begin, end);
    int half = ropeDim / 2;
    int stride = pairing == RopePairing.ADJACENT ? 2 : 1;
    int distance = pairing == RopePairing.ADJACENT ? 1 : half;
    for (int token = begin; token < end; token++) {
      for (int head = 0; head < numHeads; head++) {
        long row = (long) token * ldx + (long) head * headDim;
        for (int pair = 0; pair < half; pair++) {
          long at = ((long) token * half + pair) * 2;
          float cos = cosSin.getAtIndex(JAVA_FLOAT, at);
          float sin = cosSin.getAtIndex(JAVA_FLOAT, at + 1);
          long first = row + (long) pair * stride;
          float a = x.getAtIndex(JAVA_FLOAT, first);
          float b = x.getAtIndex(JAVA_FLOAT, first + distance);
          x.setAtIndex(JAVA_FLOAT, first, a * cos - b * sin);
          x.setAtIndex(JAVA_FLOAT, first + distance, a * sin + b * cos);
        }
      }
    }
    OperationCost.rope(ropeDim, numHeads, begin, end, worker);
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
    long written = 0;
    for (int token = 0; token < tokens; token++) {
      long slot = slots.getAtIndex(JAVA_LONG, token);
      if (slot < 0) {
        continue;
      }
      written++;
      for (int head = begin; head < end; head++) {
        ScalarKvWrite.head(
            cache,
            (int) (slot % KvCacheLayer.BLOCK_TOKENS),
            cache.headOffset(slot / KvCacheLayer.BLOCK_TOKENS, head),
            k,
            (long) token * ldk + (long) head * cache.headDim(),
            v,
            (long) token * ldv + (long) head * cache.headDim());
      }
    }
    OperationCost.kvWrite(cache, tokens, written, begin, end, worker);
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
      ScalarAttention.item(shape, cache, batch, item, q, ldq, out, ldo, worker.scratch());
    }
    OperationCost.attention(shape, cache, batch, begin, end, worker);
  }

  @Override
  public long attentionScratchBytes(AttentionShape shape) {
    return (long) shape.headDim() * Double.BYTES;
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
    ArgumentChecks.kvCopyBlocks(caches, blockBytes, numBlocks, pairs, numPairs, begin, end);
    for (int item = begin; item < end; item++) {
      MemorySegment cache = caches[item / numPairs];
      long pair = item % numPairs * 2L;
      long from = pairs.getAtIndex(JAVA_LONG, pair) * blockBytes;
      long to = pairs.getAtIndex(JAVA_LONG, pair + 1) * blockBytes;
      MemorySegment.copy(cache, from, cache, to, blockBytes);
    }
    OperationCost.kvCopyBlocks(blockBytes, begin, end, worker);
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
    ArgumentChecks.siluMul(gate, ldGate, up, ldUp, m, y, rowBytes(y), begin, end);
    MemorySegment product = worker.scratch();
    for (int i = 0; i < m; i++) {
      for (int block = begin; block < end; block++) {
        int first = block * ACTIVATION_BLOCK;
        int count = Math.min(ACTIVATION_BLOCK, y.k() - first);
        for (int j = 0; j < count; j++) {
          double g = gate.getAtIndex(JAVA_FLOAT, (long) i * ldGate + first + j);
          double u = up.getAtIndex(JAVA_FLOAT, (long) i * ldUp + first + j);
          product.setAtIndex(JAVA_FLOAT, j, (float) (g / (1 + Math.exp(-g)) * u));
        }
        put(product, 0, y, i, block, count);
      }
    }
    OperationCost.siluMul(y.k(), m, begin, end, worker);
  }
}
