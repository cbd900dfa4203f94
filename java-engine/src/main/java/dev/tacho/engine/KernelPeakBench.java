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
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
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

  /* A product of 34 million operations, as many rows as a prefill has, its weight of 512 KiB and its rows in the
   * second-level cache. */
  private static final int ROWS = 128;
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
  public @Nullable Measurement measure(BooleanSupplier workArrived) {
    MEASURING.lock();
    try {
      Best flops = flopsPerSecond(workArrived);
      Best bytes = bytesPerSecond(workArrived);
      return workArrived.getAsBoolean() || flops.rate <= 0 || bytes.rate <= 0
          ? null
          : new Measurement(new DevicePeaks(flops.rate, bytes.rate), Math.min(flops.cpuShare, bytes.cpuShare));
    } finally {
      MEASURING.unlock();
    }
  }

  private Best flopsPerSecond(BooleanSupplier workArrived) {
    try (Arena arena = Arena.ofShared()) {
      List<Product> products = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        products.add(new Product(kernels, dtype, arena));
      }
      Best best = new Best();
      for (int i = 0; i < PASSES && !workArrived.getAsBoolean(); i++) {
        AtomicLong calls = new AtomicLong();
        Pass pass = onThreads(thread -> calls.addAndGet(products.get(thread).runFor(PASS_NANOS, workArrived)));
        best.take(calls.get() * FLOPS, pass);
      }
      return best;
    }
  }

  private Best bytesPerSecond(BooleanSupplier workArrived) {
    try (Arena arena = Arena.ofShared()) {
      List<MemorySegment> pieces = new ArrayList<>();
      for (long bytes = 0; bytes < BUFFER_BYTES && !workArrived.getAsBoolean(); bytes += PIECE_BYTES) {
        // Filled, as pages that were never written share one page of zeros.
        pieces.add(arena.allocate(PIECE_BYTES, JAVA_LONG.byteSize()).fill((byte) 1));
      }
      AtomicLong checksum = new AtomicLong();
      AtomicBoolean ended = new AtomicBoolean();
      Best best = new Best();
      for (int i = 0; i < PASSES && !workArrived.getAsBoolean(); i++) {
        Pass pass =
            onThreads(
                thread -> {
                  long sum = 0;
                  for (int piece = thread; piece < pieces.size(); piece += threads) {
                    if (workArrived.getAsBoolean()) {
                      ended.set(true);
                      return;
                    }
                    sum += sum(pieces.get(piece));
                  }
                  checksum.addAndGet(sum);
                });
        if (!ended.get()) {
          best.take(BUFFER_BYTES, pass);
        }
      }
      return checksum.get() == 0 ? new Best() : best;
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

  /** How long a pass took, and the share of its time that the thread with the least had a CPU. */
  private record Pass(long nanos, double cpuShare) {}

  /** The fastest pass. */
  private static final class Best {
    double rate;
    double cpuShare = 1;

    void take(long work, Pass pass) {
      double rateOfPass = work * NANOS / pass.nanos;
      if (rateOfPass > rate) {
        rate = rateOfPass;
        cpuShare = pass.cpuShare;
      }
    }
  }

  /** Runs a share; returns CPU time over time. */
  private static double timed(Share share, int thread) {
    ThreadMXBean jvm = ManagementFactory.getThreadMXBean();
    boolean known = jvm.isCurrentThreadCpuTimeSupported();
    long cpu = known ? jvm.getCurrentThreadCpuTime() : 0;
    long start = System.nanoTime();
    share.run(thread);
    long nanos = System.nanoTime() - start;
    return known && nanos > 0 ? (double) (jvm.getCurrentThreadCpuTime() - cpu) / nanos : 1;
  }

  /** Runs a share on each of the threads. */
  @SuppressWarnings("ThreadPriorityCheck") // nothing is right or wrong by it: requests only come first a little sooner
  private Pass onThreads(Share share) {
    List<Thread> started = new ArrayList<>();
    double[] cpuShares = new double[threads];
    long start = System.nanoTime();
    try {
      for (int i = 0; i < threads; i++) {
        int number = i;
        started.add(
            Thread.ofPlatform()
                .daemon()
                .name("tacho-peaks-" + i)
                .priority(Thread.MIN_PRIORITY)
                .start(() -> cpuShares[number] = timed(share, number)));
      }
    } finally {
      // Also if one could not be started: the others compute in memory that is closed next.
      started.forEach(EngineRuntime::join);
    }
    return new Pass(System.nanoTime() - start, Arrays.stream(cpuShares).min().orElse(1));
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
