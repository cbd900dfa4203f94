package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The operations by brute force, written from their definitions alone: what the scalar kernels are compared with.
 * Shares no arithmetic with them: weights are packed into doubles, tensors are copied into arrays, the softmax is the
 * textbook one, and flops and bytes are counted where they happen.
 */
final class ReferenceKernels implements Kernels {
  private long flops;
  private long read;
  private long written;

  private void count(Operation operation, boolean empty, KernelWorker worker) {
    if (!empty) {
      worker.count(operation, flops, read, written);
    }
    flops = 0;
    read = 0;
    written = 0;
  }

  @Override
  public String id() {
    return "reference";
  }

  @Override
  public String description() {
    return "reference";
  }

  @Override
  public long weightBytes(DType dtype, int n, int k) {
    return 8L * n * k;
  }

  @Override
  public void weightPack(Weight weight, MemorySegment source, int begin, int end, KernelWorker worker) {
    for (int row = 16 * begin; row < Math.min(16 * end, weight.n()); row++) {
      for (int j = 0; j < weight.k(); j++) {
        long at = (long) row * weight.k() + j;
        weight.data().set(JAVA_DOUBLE_UNALIGNED, 8 * at, element(weight.dtype(), source, at));
      }
      read += rowBytes(weight);
      written += rowBytes(weight);
    }
    count(Operation.WEIGHT_PACK, begin == end, worker);
  }

  private static long rowBytes(Weight weight) {
    return (long) weight.k() / weight.dtype().blockElements() * weight.dtype().blockBytes();
  }

  static double element(DType dtype, MemorySegment source, long at) {
    return switch (dtype) {
      case F32 -> source.get(JAVA_FLOAT_UNALIGNED, 4 * at);
      case F16 -> half(source.get(JAVA_SHORT_UNALIGNED, 2 * at));
      case BF16 -> Float.intBitsToFloat((source.get(JAVA_SHORT_UNALIGNED, 2 * at) & 0xffff) * 65536);
      case Q8_0 -> {
        long block = at / 32 * 34;
        yield half(source.get(JAVA_SHORT_UNALIGNED, block)) * source.get(JAVA_BYTE, block + 2 + at % 32);
      }
      case Q4_0 -> {
        int pair = source.get(JAVA_BYTE, at / 32 * 18 + 2 + at % 16) & 0xff;
        int code = at % 32 < 16 ? pair % 16 : pair / 16;
        yield half(source.get(JAVA_SHORT_UNALIGNED, at / 32 * 18)) * (code - 8);
      }
    };
  }

  /** A half by its definition. */
  static double half(short bits) {
    int exponent = (bits >> 10) & 31;
    int fraction = bits & 1023;
    double size = exponent == 0 ? fraction * 0x1p-24 : (1024 + fraction) * Math.scalb(1.0, exponent - 25);
    return bits < 0 ? -size : size;
  }

  @Override
  public void embeddingLookup(
      Weight table, MemorySegment ids, int m, MemorySegment y, int ldy, int begin, int end, KernelWorker worker) {
    for (int i = begin; i < end; i++) {
      double[] row = doubles(table, ids.getAtIndex(JAVA_INT, i));
      store(y, i, ldy, 0, row);
      read += rowBytes(table);
    }
    count(Operation.EMBEDDING_LOOKUP, begin == end, worker);
  }

  private static double[] doubles(Weight weight, int row) {
    double[] values = new double[weight.k()];
    for (int j = 0; j < values.length; j++) {
      values[j] = weight.data().get(JAVA_DOUBLE_UNALIGNED, 8 * ((long) row * weight.k() + j));
    }
    return values;
  }

  private double[] load(MemorySegment x, int row, int ld, int from, int n) {
    double[] values = new double[n];
    for (int j = 0; j < n; j++) {
      values[j] = x.get(JAVA_FLOAT_UNALIGNED, 4 * ((long) row * ld + from + j));
    }
    read += 4L * n;
    return values;
  }

  private void store(MemorySegment y, int row, int ld, int from, double[] values) {
    for (int j = 0; j < values.length; j++) {
      y.set(JAVA_FLOAT_UNALIGNED, 4 * ((long) row * ld + from + j), (float) values[j]);
    }
    written += 4L * values.length;
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
    double[][] rows = new double[m][];
    for (int i = 0; i < m; i++) {
      rows[i] = load(x, i, ldx, 0, w.k());
    }
    for (int column = 16 * begin; column < Math.min(16 * end, w.n()); column++) {
      double[] weights = doubles(w, column);
      read += rowBytes(w);
      for (int i = 0; i < m; i++) {
        double sum = bias == null ? 0 : bias.get(JAVA_FLOAT_UNALIGNED, 4L * column);
        for (int j = w.k() - 1; j >= 0; j--) {
          sum += weights[j] * rows[i][j];
          flops += 2;
        }
        store(y, i, ldy, column, new double[] {sum});
      }
    }
    count(Operation.MATMUL, begin == end || m == 0, worker);
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
    double[] weights = load(weight, 0, n, 0, n);
    for (int i = begin; i < end; i++) {
      double[] values = load(x, i, ldx, 0, n);
      double norm = Math.sqrt(Arrays.stream(values).map(v -> v * v / n).sum() + epsilon);
      for (int j = 0; j < n; j++) {
        values[j] = values[j] / norm * weights[j];
        flops += 4; // square, sum, the two products
      }
      store(y, i, ldy, 0, values);
    }
    count(Operation.RMS_NORM, begin == end, worker);
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
    for (int token = begin; token < end; token++) {
      double[] angles = load(cosSin, token, ropeDim, 0, ropeDim);
      for (int head = 0; head < numHeads; head++) {
        double[] values = load(x, token, ldx, head * headDim, ropeDim);
        double[] turned = values.clone();
        for (int pair = 0; pair < ropeDim / 2; pair++) {
          int a = pairing == RopePairing.ADJACENT ? 2 * pair : pair;
          int b = pairing == RopePairing.ADJACENT ? 2 * pair + 1 : pair + ropeDim / 2;
          turned[a] = values[a] * angles[2 * pair] - values[b] * angles[2 * pair + 1];
          turned[b] = values[a] * angles[2 * pair + 1] + values[b] * angles[2 * pair];
          flops += 6; // four products, a difference, a sum
        }
        store(x, token, ldx, head * headDim, turned);
      }
    }
    count(Operation.ROPE, begin == end, worker);
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
    int size = cache.headDim();
    for (int token = 0; token < tokens; token++) {
      long slot = slots.getAtIndex(JAVA_LONG, token);
      for (int head = begin; slot >= 0 && head < end; head++) {
        double[] keys = load(k, token, ldk, head * size, size);
        double[] values = load(v, token, ldv, head * size, size);
        long start = (slot / 16 * cache.numKvHeads() + head) * size * 16;
        for (int d = 0; d < size; d++) {
          put(cache.dtype(), cache.k(), start + d * 16L + slot % 16, keys[d]);
          put(cache.dtype(), cache.v(), start + slot % 16 * size + d, values[d]);
        }
      }
    }
    count(Operation.KV_WRITE, begin == end || tokens == 0, worker);
  }

  /** Stores the nearest element, the even one of two: found by looking at the candidates around it. */
  private void put(DType dtype, MemorySegment cache, long at, double value) {
    if (dtype == DType.F32) {
      cache.set(JAVA_FLOAT_UNALIGNED, 4 * at, (float) value);
      written += 4;
      return;
    }
    int low = dtype == DType.F16 ? Float.floatToFloat16((float) value) : Float.floatToRawIntBits((float) value) >> 16;
    int best = low;
    for (int candidate = low - 1; candidate <= low + 1; candidate++) {
      double distance = Math.abs(wide(dtype, candidate) - value);
      double bestDistance = Math.abs(wide(dtype, best) - value);
      if (distance < bestDistance || (distance == bestDistance && candidate % 2 == 0)) {
        best = candidate;
      }
    }
    cache.set(JAVA_SHORT_UNALIGNED, 2 * at, (short) best);
    written += 2;
  }

  private static double wide(DType dtype, int bits) {
    return dtype == DType.F16 ? half((short) bits) : Float.intBitsToFloat(bits << 16);
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
    int size = shape.headDim();
    int group = shape.numHeads() / shape.numKvHeads();
    int elementBytes = cache.dtype() == DType.F32 ? 4 : 2;
    for (int item = begin; item < end; item++) {
      int sequence = batch.items().getAtIndex(JAVA_INT, 4L * item);
      int kvHead = batch.items().getAtIndex(JAVA_INT, 4L * item + 1);
      int firstQuery = batch.items().getAtIndex(JAVA_INT, 4L * item + 2);
      int endQuery = batch.items().getAtIndex(JAVA_INT, 4L * item + 3);
      int start = batch.qStarts().getAtIndex(JAVA_INT, sequence);
      int queries = batch.qStarts().getAtIndex(JAVA_INT, sequence + 1L) - start;
      int context = batch.contextLens().getAtIndex(JAVA_INT, sequence);
      boolean[] seen = new boolean[context];
      for (int query = firstQuery; query < endQuery; query++) {
        int position = context - queries + query;
        int from = shape.window() == 0 ? 0 : Math.max(0, position - shape.window() + 1);
        Arrays.fill(seen, from, position + 1, true);
        for (int head = kvHead * group; head < (kvHead + 1) * group; head++) {
          double[] wanted = load(q, start + query, ldq, head * size, size);
          double[] scores = new double[position + 1 - from];
          for (int i = 0; i < scores.length; i++) {
            long keys = block(cache, batch, sequence, from + i, kvHead);
            for (int d = 0; d < size; d++) {
              scores[i] += wanted[d] * element(cache.dtype(), cache.k(), keys + d * 16L + (from + i) % 16);
              flops += 2;
            }
            scores[i] *= shape.scale();
            if (shape.softcap() > 0) {
              scores[i] = shape.softcap() * Math.tanh(scores[i] / shape.softcap());
            }
          }
          double[] sum = weightedSum(shape, cache, batch, sequence, kvHead, head, from, scores);
          store(out, start + query, ldo, head * size, sum);
        }
      }
      for (boolean key : seen) {
        read += key ? 2L * size * elementBytes : 0;
      }
    }
    count(Operation.ATTENTION, begin == end, worker);
  }

  private double[] weightedSum(
      AttentionShape shape,
      KvCacheLayer cache,
      AttentionBatch batch,
      int sequence,
      int kvHead,
      int head,
      int from,
      double[] scores) {
    int size = shape.headDim();
    double max = Arrays.stream(scores).max().orElseThrow();
    double total = 0;
    MemorySegment sinks = shape.sinks();
    if (sinks != null) {
      total = Math.exp(sinks.get(JAVA_FLOAT_UNALIGNED, 4L * head) - max);
    }
    double[] sum = new double[size];
    for (int i = 0; i < scores.length; i++) {
      double weight = Math.exp(scores[i] - max);
      total += weight;
      long values = block(cache, batch, sequence, from + i, kvHead);
      for (int d = 0; d < size; d++) {
        sum[d] += weight * element(cache.dtype(), cache.v(), values + (from + i) % 16L * size + d);
        flops += 2;
      }
    }
    for (int d = 0; d < size; d++) {
      sum[d] /= total;
    }
    return sum;
  }

  /** The first element of a key's block and head, the same in K and V. */
  private static long block(KvCacheLayer cache, AttentionBatch batch, int sequence, int key, int kvHead) {
    long entry = (long) sequence * batch.blockTableStride() + key / 16;
    long block = batch.blockTable().getAtIndex(JAVA_INT, entry);
    return (block * cache.numKvHeads() + kvHead) * cache.headDim() * 16;
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
    for (int item = begin; item < end; item++) {
      MemorySegment cache = caches[item / numPairs];
      long from = pairs.getAtIndex(JAVA_LONG, 2L * (item % numPairs));
      long to = pairs.getAtIndex(JAVA_LONG, 2L * (item % numPairs) + 1);
      for (long i = 0; i < blockBytes; i++) {
        cache.set(JAVA_BYTE, to * blockBytes + i, cache.get(JAVA_BYTE, from * blockBytes + i));
        read++;
        written++;
      }
    }
    count(Operation.KV_COPY_BLOCKS, begin == end, worker);
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
    for (int i = begin; i < end; i++) {
      double[] values = load(gate, i, ldGate, 0, n);
      double[] factors = load(up, i, ldUp, 0, n);
      for (int j = 0; j < n; j++) {
        values[j] = values[j] * factors[j] / (1 + Math.exp(-values[j]));
        flops += 5; // negation, exp, sum, division, product
      }
      store(y, i, ldy, 0, values);
    }
    count(Operation.SILU_MUL, begin == end, worker);
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
    for (int i = begin; i < end; i++) {
      double[] sums = load(a, i, lda, 0, n);
      double[] others = load(b, i, ldb, 0, n);
      for (int j = 0; j < n; j++) {
        sums[j] += others[j];
        flops++;
      }
      store(y, i, ldy, 0, sums);
    }
    count(Operation.ADD, begin == end, worker);
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
    for (int i = begin; i < end; i++) {
      double[] values = load(x, i, ldx, 0, n);
      double max = Arrays.stream(values).max().orElseThrow() * scale;
      double sum = Arrays.stream(values).map(v -> Math.exp(v * scale - max)).sum();
      for (int j = 0; j < n; j++) {
        values[j] = Math.exp(values[j] * scale - max) / sum;
        flops += 5; // scale, difference, exp, sum, division
      }
      store(y, i, ldy, 0, values);
    }
    count(Operation.SOFTMAX, begin == end, worker);
  }

  @Override
  public long attentionScratchBytes(AttentionShape shape) {
    return 0;
  }
}
