package dev.tacho.engine;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.Weight;
import dev.tacho.metrics.perf.DevicePeaks;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * What our own kernels and the memory give to a number of threads: operations of a matrix product whose operands stay
 * in the caches, and bytes of a buffer that does not fit there, read once. The best of several passes counts, as only
 * the others' work makes one slower.
 *
 * <p>It takes {@link #BUFFER_BYTES} beside what the engine has, and gives them back. The threads are its own, of the
 * lowest priority: those of a team belong to its runner.
 *
 * @param kernels what the engine computes with
 * @param dtype the type that most of the weights have: integer products are faster than float ones
 * @param threads how many threads the engine has
 */
record KernelPeakBench(Kernels kernels, DType dtype, int threads) implements PeakBench {
  private static final int PASSES = 8;

  /* Two measurements beside each other would halve what each finds. */
  private static final ReentrantLock MEASURING = new ReentrantLock();

  /* A buffer larger than the caches, in pieces between which the measurement can end. */
  static final long BUFFER_BYTES = 256L << 20;
  private static final int PIECE_BYTES = 1 << 20;

  /* A product of 8 million operations, its weight of 512 KiB and its rows in the second-level cache. */
  private static final int ROWS = 32;
  private static final int OUTPUTS = 256;
  private static final int INPUTS = 512;
  private static final long FLOPS = 2L * ROWS * OUTPUTS * INPUTS;
  private static final long PASS_NANOS = 30_000_000;

  private static final double NANOS = 1e9;
  private static final Path CPU_FACTS = Path.of("/proc/cpuinfo");
  private static final String CPU_NAME = "model name";

  @Override
  public String subject() {
    return cpuName() + ", " + threads + " threads, " + dtype + ", " + kernels.description();
  }

  private static String cpuName() {
    try {
      for (String line : Files.readAllLines(CPU_FACTS)) {
        if (line.startsWith(CPU_NAME)) {
          return line.substring(line.indexOf(':') + 1).strip();
        }
      }
    } catch (IOException e) {
      // Elsewhere than on Linux; the architecture has to do.
      return System.getProperty("os.arch");
    }
    return System.getProperty("os.arch");
  }

  @Override
  public @Nullable DevicePeaks measure(BooleanSupplier workArrived) {
    MEASURING.lock();
    try {
      double flops = flopsPerSecond(workArrived);
      double bytes = bytesPerSecond(workArrived);
      return workArrived.getAsBoolean() || flops <= 0 || bytes <= 0 ? null : new DevicePeaks(flops, bytes);
    } finally {
      MEASURING.unlock();
    }
  }

  private double flopsPerSecond(BooleanSupplier workArrived) {
    try (Arena arena = Arena.ofShared()) {
      List<Product> products = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        products.add(new Product(kernels, dtype, arena));
      }
      double best = 0;
      for (int pass = 0; pass < PASSES && !workArrived.getAsBoolean(); pass++) {
        AtomicLong calls = new AtomicLong();
        long nanos = onThreads(thread -> calls.addAndGet(products.get(thread).runFor(PASS_NANOS, workArrived)));
        best = Math.max(best, calls.get() * FLOPS * NANOS / nanos);
      }
      return best;
    }
  }

  private double bytesPerSecond(BooleanSupplier workArrived) {
    try (Arena arena = Arena.ofShared()) {
      List<MemorySegment> pieces = new ArrayList<>();
      for (long bytes = 0; bytes < BUFFER_BYTES && !workArrived.getAsBoolean(); bytes += PIECE_BYTES) {
        // Filled, as pages that were never written share one page of zeros.
        pieces.add(arena.allocate(PIECE_BYTES, JAVA_LONG.byteSize()).fill((byte) 1));
      }
      AtomicLong checksum = new AtomicLong();
      AtomicBoolean ended = new AtomicBoolean();
      double best = 0;
      for (int pass = 0; pass < PASSES && !workArrived.getAsBoolean(); pass++) {
        long nanos =
            onThreads(
                thread -> {
                  long sum = 0;
                  for (int i = thread; i < pieces.size(); i += threads) {
                    if (workArrived.getAsBoolean()) {
                      ended.set(true);
                      return;
                    }
                    sum += sum(pieces.get(i));
                  }
                  checksum.addAndGet(sum);
                });
        if (!ended.get()) {
          best = Math.max(best, BUFFER_BYTES * NANOS / nanos);
        }
      }
      return checksum.get() == 0 ? 0 : best;
    }
  }

  private static long sum(MemorySegment piece) {
    long a = 0;
    long b = 0;
    long c = 0;
    long d = 0;
    for (int i = 0; i < PIECE_BYTES; i += 4 * Long.BYTES) {
      a += piece.get(JAVA_LONG, i);
      b += piece.get(JAVA_LONG, i + Long.BYTES);
      c += piece.get(JAVA_LONG, i + 2 * Long.BYTES);
      d += piece.get(JAVA_LONG, i + 3 * Long.BYTES);
    }
    return a + b + c + d;
  }

  private interface Share {
    void run(int thread);
  }

  /** Runs a share on each of the threads; returns how long all took. */
  @SuppressWarnings("ThreadPriorityCheck") // nothing is right or wrong by it: requests only come first a little sooner
  private long onThreads(Share share) {
    List<Thread> started = new ArrayList<>();
    long start = System.nanoTime();
    try {
      for (int i = 0; i < threads; i++) {
        int number = i;
        started.add(
            Thread.ofPlatform()
                .daemon()
                .name("tacho-peaks-" + i)
                .priority(Thread.MIN_PRIORITY)
                .start(() -> share.run(number)));
      }
    } finally {
      // Also if one could not be started: the others compute in memory that is closed next.
      started.forEach(EngineRuntime::join);
    }
    return System.nanoTime() - start;
  }

  /** A matrix product of one thread. */
  private static final class Product {
    private final Kernels kernels;
    private final Weight weight;
    private final ActivationRows x;
    private final MemorySegment y;
    private final KernelWorker worker;

    Product(Kernels kernels, DType dtype, Arena arena) {
      this.kernels = kernels;
      worker = new KernelWorker(arena, 0);
      weight = new Weight(dtype, OUTPUTS, INPUTS, segment(arena, kernels.weightBytes(dtype, OUTPUTS, INPUTS)));
      MemorySegment source = segment(arena, dtype.bytes((long) OUTPUTS * INPUTS));
      kernels.weightPack(weight, source, 0, OUTPUTS / Kernels.ROW_GROUP, worker);
      ActivationFormat format = kernels.activationFormat(dtype);
      long rowBytes = kernels.activationRowBytes(format, INPUTS);
      x = new ActivationRows(format, INPUTS, rowBytes, segment(arena, ROWS * rowBytes));
      MemorySegment floats = segment(arena, (long) ROWS * INPUTS * Float.BYTES);
      kernels.activationPack(floats, INPUTS, ROWS, x, 0, INPUTS / Kernels.ACTIVATION_BLOCK, worker);
      y = segment(arena, (long) ROWS * OUTPUTS * Float.BYTES);
    }

    private static MemorySegment segment(Arena arena, long bytes) {
      return arena.allocate(bytes, KernelWorker.LINE_BYTES);
    }

    /** Computes it over and over; returns how often. */
    long runFor(long nanos, BooleanSupplier workArrived) {
      long calls = 0;
      long end = System.nanoTime() + nanos;
      do {
        kernels.matmul(weight, null, x, ROWS, y, OUTPUTS, false, 0, OUTPUTS / Kernels.ROW_GROUP, worker);
        calls++;
      } while (!workArrived.getAsBoolean() && System.nanoTime() - end < 0);
      return calls;
    }
  }
}
