package dev.tacho.engine.kernel.scalar;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.kernel.ArgumentChecks;
import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kernel.OperationCost;
import dev.tacho.engine.kernel.RopePairing;
import dev.tacho.engine.kernel.Weight;
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
  public void matmul(
      Weight w,
      @Nullable MemorySegment bias,
      MemorySegment x,
      int ldx,
      int m,
      MemorySegment y,
      int ldy,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.matmul(w, weightBytes(w), bias, x, ldx, m, y, ldy, begin, end);
    long rowBytes = w.dtype().bytes(w.k());
    int endRow = Math.min(end * ROW_GROUP, w.n());
    for (int row = begin * ROW_GROUP; row < endRow; row++) {
      double start = bias == null ? 0 : bias.getAtIndex(JAVA_FLOAT, row);
      for (int i = 0; i < m; i++) {
        double sum = RowDots.dot(w.dtype(), w.data(), row * rowBytes, x, (long) i * ldx, w.k());
        y.setAtIndex(JAVA_FLOAT, (long) i * ldy + row, (float) (sum + start));
      }
    }
    OperationCost.matmul(w, m, begin, end, worker);
  }

  @Override
  public void rmsNorm(
      MemorySegment x,
      int ldx,
      MemorySegment weight,
      float epsilon,
      int m,
      int n,
      MemorySegment y,
      int ldy,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.rmsNorm(x, ldx, weight, epsilon, m, n, y, ldy, begin, end);
    for (int i = begin; i < end; i++) {
      long xRow = (long) i * ldx;
      long yRow = (long) i * ldy;
      double squares = 0;
      for (int j = 0; j < n; j++) {
        double value = x.getAtIndex(JAVA_FLOAT, xRow + j);
        squares += value * value;
      }
      double factor = 1 / Math.sqrt(squares / n + epsilon);
      for (int j = 0; j < n; j++) {
        double value = x.getAtIndex(JAVA_FLOAT, xRow + j) * factor * weight.getAtIndex(JAVA_FLOAT, j);
        y.setAtIndex(JAVA_FLOAT, yRow + j, (float) value);
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
    int headDim = cache.headDim();
    long written = 0;
    for (int token = 0; token < tokens; token++) {
      long slot = slots.getAtIndex(JAVA_LONG, token);
      if (slot < 0) {
        continue;
      }
      written++;
      long block = slot / KvCacheLayer.BLOCK_TOKENS;
      long inBlock = slot % KvCacheLayer.BLOCK_TOKENS;
      for (int head = begin; head < end; head++) {
        long start = cache.headOffset(block, head);
        for (int d = 0; d < headDim; d++) {
          long column = (long) head * headDim + d;
          float key = k.getAtIndex(JAVA_FLOAT, (long) token * ldk + column);
          float value = v.getAtIndex(JAVA_FLOAT, (long) token * ldv + column);
          Elements.set(cache.dtype(), cache.k(), start, (long) d * KvCacheLayer.BLOCK_TOKENS + inBlock, key);
          Elements.set(cache.dtype(), cache.v(), start, inBlock * headDim + d, value);
        }
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
      int n,
      MemorySegment y,
      int ldy,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.binary(gate, ldGate, up, ldUp, m, n, y, ldy, begin, end);
    for (int i = begin; i < end; i++) {
      for (int j = 0; j < n; j++) {
        double g = gate.getAtIndex(JAVA_FLOAT, (long) i * ldGate + j);
        double u = up.getAtIndex(JAVA_FLOAT, (long) i * ldUp + j);
        y.setAtIndex(JAVA_FLOAT, (long) i * ldy + j, (float) (g / (1 + Math.exp(-g)) * u));
      }
    }
    OperationCost.siluMul(n, begin, end, worker);
  }

  @Override
  public void add(
      MemorySegment a,
      int lda,
      MemorySegment b,
      int ldb,
      int m,
      int n,
      MemorySegment y,
      int ldy,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.binary(a, lda, b, ldb, m, n, y, ldy, begin, end);
    for (int i = begin; i < end; i++) {
      for (int j = 0; j < n; j++) {
        float sum = a.getAtIndex(JAVA_FLOAT, (long) i * lda + j) + b.getAtIndex(JAVA_FLOAT, (long) i * ldb + j);
        y.setAtIndex(JAVA_FLOAT, (long) i * ldy + j, sum);
      }
    }
    OperationCost.add(n, begin, end, worker);
  }

  @Override
  public void softmax(
      MemorySegment x,
      int ldx,
      float scale,
      int m,
      int n,
      MemorySegment y,
      int ldy,
      int begin,
      int end,
      KernelWorker worker) {
    ArgumentChecks.softmax(x, ldx, scale, m, n, y, ldy, begin, end);
    for (int i = begin; i < end; i++) {
      long xRow = (long) i * ldx;
      double max = Double.NEGATIVE_INFINITY;
      for (int j = 0; j < n; j++) {
        max = Math.max(max, (double) x.getAtIndex(JAVA_FLOAT, xRow + j) * scale);
      }
      double sum = 0;
      for (int j = 0; j < n; j++) {
        sum += Math.exp((double) x.getAtIndex(JAVA_FLOAT, xRow + j) * scale - max);
      }
      for (int j = 0; j < n; j++) {
        double power = Math.exp((double) x.getAtIndex(JAVA_FLOAT, xRow + j) * scale - max);
        y.setAtIndex(JAVA_FLOAT, (long) i * ldy + j, (float) (power / sum));
      }
    }
    OperationCost.softmax(n, begin, end, worker);
  }
}
