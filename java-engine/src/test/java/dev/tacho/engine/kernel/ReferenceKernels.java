package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.Arena;
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
  public MemorySegment allocate(Arena arena, long bytes) {
    return arena.allocate(bytes, 64);
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
      case Q4_K -> q4k(source.asSlice(at / 256 * 144, 144).toArray(JAVA_BYTE), (int) (at % 256));
      case Q6_K -> q6k(source.asSlice(at / 256 * 210, 210).toArray(JAVA_BYTE), (int) (at % 256));
    };
  }

  private static double half(byte[] bytes, int at) {
    return half((short) ((bytes[at] & 0xff) | (bytes[at + 1] << 8)));
  }

  /** f16 scale, f16 min, 96 bits with eight scales and minima, 256 nibbles. */
  private static double q4k(byte[] block, int j) {
    int sub = j / 32;
    int scale;
    int min;
    if (sub < 4) {
      scale = block[4 + sub] & 0x3f;
      min = block[8 + sub] & 0x3f;
    } else {
      scale = (block[8 + sub] & 0x0f) + (block[sub] & 0xc0) / 4;
      min = (block[8 + sub] & 0xf0) / 16 + (block[4 + sub] & 0xc0) / 4;
    }
    int pair = block[16 + 32 * (j / 64) + j % 32] & 0xff;
    int code = sub % 2 == 0 ? pair % 16 : pair / 16;
    return half(block, 0) * scale * code - half(block, 2) * min;
  }

  /** 256 low nibbles, 256 pairs of bits, sixteen scales, f16 scale. */
  private static double q6k(byte[] block, int j) {
    int quarter = j % 128 / 32;
    int pair = block[64 * (j / 128) + 32 * (quarter % 2) + j % 32] & 0xff;
    int low = quarter < 2 ? pair % 16 : pair / 16;
    int bits = block[128 + 32 * (j / 128) + j % 32] & 0xff;
    int high = bits / (1 << (2 * quarter)) % 4;
    return half(block, 208) * block[192 + j / 16] * (low + 16 * high - 32);
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
  public ActivationFormat activationFormat(DType weights) {
    return weights.blockElements() > 1 ? ActivationFormat.INT8 : ActivationFormat.FLOAT32;
  }

  /** Doubles, also where they stand for 8-bit codes. */
  @Override
  public long activationRowBytes(ActivationFormat format, int k) {
    return 8L * k;
  }

  @Override
  public void activationPack(
      MemorySegment x, int ldx, int m, ActivationRows packed, int begin, int end, KernelWorker worker) {
    for (int block = begin; block < end; block++) {
      int first = 32 * block;
      for (int i = 0; i < m; i++) {
        double[] values = load(x, i, ldx, first, Math.min(32, packed.k() - first));
        if (packed.format() == ActivationFormat.INT8) {
          roundTo8Bits(values);
        }
        for (int j = 0; j < values.length; j++) {
          packed.data().set(JAVA_DOUBLE_UNALIGNED, i * packed.rowBytes() + 8L * (first + j), values[j]);
        }
        written += 4L * values.length;
      }
    }
    count(Operation.ACTIVATION_PACK, begin == end || m == 0, worker);
  }

  /** Each value as the product of a code in [-127, 127] and the block's scale, both computed as floats are. */
  private static void roundTo8Bits(double[] values) {
    float largest = (float) Arrays.stream(values).map(Math::abs).max().orElseThrow();
    for (int j = 0; j < values.length; j++) {
      values[j] = Math.rint((float) values[j] * (127 / largest)) * (largest / 127);
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
    for (int column = 16 * begin; column < Math.min(16 * end, w.n()); column++) {
      double[] weights = doubles(w, column);
      read += rowBytes(w);
      for (int i = 0; i < m; i++) {
        double sum = bias == null ? 0 : bias.get(JAVA_FLOAT_UNALIGNED, 4L * column);
        for (int j = w.k() - 1; j >= 0; j--) {
          sum += weights[j] * x.data().get(JAVA_DOUBLE_UNALIGNED, i * x.rowBytes() + 8L * j);
          flops += 2;
        }
        if (accumulate) {
          sum += load(y, i, ldy, column, 1)[0];
          flops++;
        }
        store(y, i, ldy, column, new double[] {sum});
      }
    }
    read += 4L * m * w.k();
    count(Operation.MATMUL, begin == end || m == 0, worker);
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
    int n = y.k();
    double[] weights = load(weight, 0, n, 0, n);
    for (int i = begin; i < end; i++) {
      double[] values = load(x, i, ldx, 0, n);
      double norm = Math.sqrt(Arrays.stream(values).map(v -> v * v / n).sum() + epsilon);
      for (int j = 0; j < n; j++) {
        values[j] = values[j] / norm * weights[j];
        flops += 4; // square, sum, the two products
      }
      store(y.data(), i, (int) (y.rowBytes() / 4), 0, values);
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
        long panel = (slot / 16 * cache.numKvHeads() + head) * panelBytes(cache);
        if (cache.dtype() == DType.Q8_0) {
          putScaled(cache.k(), panel, size, (int) (slot % 16), true, keys);
          putScaled(cache.v(), panel, size, (int) (slot % 16), false, values);
          continue;
        }
        long start = panel / (cache.dtype() == DType.F32 ? 4 : 2);
        for (int d = 0; d < size; d++) {
          put(cache.dtype(), cache.k(), start + d * 16L + slot % 16, keys[d]);
          put(cache.dtype(), cache.v(), start + slot % 16 * size + d, values[d]);
        }
      }
    }
    count(Operation.KV_WRITE, begin == end || tokens == 0, worker);
  }

  /** Bytes of one head in one block. */
  private static long panelBytes(KvCacheLayer cache) {
    int size = cache.headDim();
    return switch (cache.dtype()) {
      case F32 -> 64L * size;
      case Q8_0 -> 16L * size + 32L * ((size + 31) / 32);
      default -> 32L * size;
    };
  }

  /** Groups of 32 elements: scale m / 127 as a half, codes to the nearest, the even one of two. */
  private void putScaled(MemorySegment cache, long panel, int size, int slot, boolean keys, double[] values) {
    long codes = panel + 32L * ((size + 31) / 32);
    for (int first = 0; first < size; first += 32) {
      int end = Math.min(first + 32, size);
      float largest = (float) Arrays.stream(values, first, end).map(Math::abs).reduce(0, Math::max);
      float unit = largest / 127;
      float scale = unit < 65520 ? Float.float16ToFloat(Float.floatToFloat16(unit)) : Float.NaN;
      cache.set(JAVA_SHORT_UNALIGNED, panel + (first / 32 * 16L + slot) * 2, Float.floatToFloat16(scale));
      for (int d = first; d < end; d++) {
        float code = scale > 0 ? (float) values[d] * (1 / unit) : 0;
        cache.set(JAVA_BYTE, codes + (keys ? d * 16L + slot : (long) slot * size + d), (byte) Math.rint(code));
      }
      written += 2 + end - first;
    }
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
    for (int item = begin; item < end; item++) {
      int[] members = batch.items().asSlice(32L * item, 32).toArray(JAVA_INT);
      int sequence = members[0];
      int kvHead = members[1];
      int start = batch.qStarts().getAtIndex(JAVA_INT, sequence);
      int queries = batch.qStarts().getAtIndex(JAVA_INT, sequence + 1L) - start;
      int context = batch.contextLens().getAtIndex(JAVA_INT, sequence);
      boolean[] seen = new boolean[context];
      for (int query = members[2]; query < members[3]; query++) {
        int position = context - queries + query;
        int from = shape.window() == 0 ? 0 : Math.max(0, position - shape.window() + 1);
        for (int key = Math.max(from, 512 * members[4]); key < Math.min(position + 1, 512 * members[5]); key++) {
          seen[key] = true;
          flops += 4L * size * group; // q . k and weight * v
        }
        for (int head = kvHead * group; members[4] == 0 && head < (kvHead + 1) * group; head++) {
          double[] wanted = load(q, start + query, ldq, head * size, size);
          double[] scores = new double[position + 1 - from];
          for (int i = 0; i < scores.length; i++) {
            for (int d = 0; d < size; d++) {
              scores[i] += wanted[d] * element(cache, true, batch, sequence, from + i, kvHead, d);
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
        read += key ? panelBytes(cache) / 8 : 0; // K and V of one of 16 tokens
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
      for (int d = 0; d < size; d++) {
        sum[d] += weight * element(cache, false, batch, sequence, from + i, kvHead, d);
      }
    }
    for (int d = 0; d < size; d++) {
      sum[d] /= total;
    }
    return sum;
  }

  /** Element d of a key or a value. */
  private static double element(
      KvCacheLayer cache, boolean ofKey, AttentionBatch batch, int sequence, int key, int kvHead, int d) {
    MemorySegment of = ofKey ? cache.k() : cache.v();
    int size = cache.headDim();
    long entry = (long) sequence * batch.blockTableStride() + key / 16;
    long block = batch.blockTable().getAtIndex(JAVA_INT, entry);
    long panel = (block * cache.numKvHeads() + kvHead) * panelBytes(cache);
    long index = ofKey ? d * 16L + key % 16 : key % 16L * size + d;
    if (cache.dtype() == DType.Q8_0) {
      double scale = half(of.get(JAVA_SHORT_UNALIGNED, panel + (d / 32 * 16L + key % 16) * 2));
      return scale * of.get(JAVA_BYTE, panel + 32L * ((size + 31) / 32) + index);
    }
    return element(cache.dtype(), of, panel / (cache.dtype() == DType.F32 ? 4 : 2) + index);
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
      ActivationRows y,
      int begin,
      int end,
      KernelWorker worker) {
    int first = 32 * begin;
    int columns = Math.min(32 * end, y.k()) - first;
    for (int i = 0; i < m; i++) {
      double[] values = load(gate, i, ldGate, first, columns);
      double[] factors = load(up, i, ldUp, first, columns);
      for (int j = 0; j < columns; j++) {
        values[j] = values[j] * factors[j] / (1 + Math.exp(-values[j]));
        flops += 5; // negation, exp, sum, division, product
      }
      store(y.data(), i, (int) (y.rowBytes() / 4), first, values);
    }
    count(Operation.SILU_MUL, begin == end || m == 0, worker);
  }

  @Override
  public long attentionScratchBytes(AttentionShape shape) {
    return 0;
  }
}
