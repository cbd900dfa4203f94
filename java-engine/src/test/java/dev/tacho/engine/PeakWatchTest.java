package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KernelSelection;
import dev.tacho.metrics.Await;
import dev.tacho.metrics.perf.DevicePeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** When a device's peaks are measured, and that work comes first. */
@Timeout(60)
class PeakWatchTest {
  private static final DevicePeaks PEAKS = new DevicePeaks(2e9, 3e9);
  private static final DevicePeaks NOTHING = new DevicePeaks(1, 1);
  private static final Duration SHORT = Duration.ofMillis(2);

  private final BlockingQueue<DevicePeaks> found = new ArrayBlockingQueue<>(4);
  private final AtomicBoolean idle = new AtomicBoolean();

  private static PeakBench.Measurement alone(DevicePeaks peaks) {
    return new PeakBench.Measurement(peaks, 0.99);
  }

  /** Measures until work arrives as often as it is told, then gives the peaks. */
  private static final class FakeBench implements PeakBench {
    final AtomicInteger begun = new AtomicInteger();
    final AtomicInteger stopped = new AtomicInteger();
    final String subject;
    final int interrupted;

    FakeBench(String subject, int interrupted) {
      this.subject = subject;
      this.interrupted = interrupted;
    }

    @Override
    public String subject() {
      return subject;
    }

    @Override
    public @Nullable Measurement measure(BooleanSupplier workArrived) {
      if (begun.incrementAndGet() > interrupted) {
        return alone(PEAKS);
      }
      Await.until("work arrived", workArrived::getAsBoolean);
      stopped.incrementAndGet();
      return null;
    }
  }

  private PeakWatch watch(PeakBench bench, Path cache) {
    return new PeakWatch(bench, new PeakCache(cache), SHORT, idle::get, found::add);
  }

  @Test
  void measuresOnceIdleStopsForWorkAndRemembers(@TempDir Path cache) throws Exception {
    FakeBench bench = new FakeBench("a CPU, 2 threads, native", 2);
    Thread thread = Thread.startVirtualThread(watch(bench, cache));
    for (int measurement = 1; measurement <= 2; measurement++) {
      assertThat(bench.begun).hasValue(measurement - 1);
      idle.set(true);
      int begun = measurement;
      Await.until("a measurement has begun", () -> bench.begun.get() == begun);
      idle.set(false);
      Await.until("a measurement has stopped", () -> bench.stopped.get() == begun);
    }
    idle.set(true);
    assertThat(found.poll(30, TimeUnit.SECONDS)).isEqualTo(PEAKS);
    thread.join();
    assertThat(bench.begun).hasValue(3);

    FakeBench again = new FakeBench(bench.subject(), 0);
    watch(again, cache).run();
    assertThat(found.poll()).isEqualTo(PEAKS);
    assertThat(again.begun).as("measurements of what is remembered").hasValue(0);

    FakeBench other = new FakeBench("a CPU, 4 threads, native", 0);
    watch(other, cache).run();
    assertThat(other.begun).as("measurements of another number of threads").hasValue(1);
  }

  @Test
  void looksSeldomWhileSomethingRuns(@TempDir Path cache) throws Exception {
    Duration idleTime = Duration.ofMillis(20);
    BlockingQueue<Long> looks = new LinkedBlockingQueue<>();
    FakeBench bench = new FakeBench("a CPU", 0);
    PeakWatch watch =
        new PeakWatch(
            bench,
            new PeakCache(cache),
            idleTime,
            () -> {
              looks.add(System.nanoTime());
              return idle.get();
            },
            found::add);
    Thread thread = Thread.startVirtualThread(watch);
    long first = Objects.requireNonNull(looks.poll(30, TimeUnit.SECONDS));
    long second = Objects.requireNonNull(looks.poll(30, TimeUnit.SECONDS));
    assertThat(second - first).isGreaterThanOrEqualTo(idleTime.multipliedBy(5).toNanos());
    idle.set(true);
    assertThat(found.poll(30, TimeUnit.SECONDS)).as("what it finds when nothing runs").isEqualTo(PEAKS);
    thread.join();
  }

  /** Gives one measurement after another, the last again and again. */
  private record Series(List<Measurement> measurements, AtomicInteger begun) implements PeakBench {
    @Override
    public String subject() {
      return "a CPU";
    }

    @Override
    public Measurement measure(BooleanSupplier workArrived) {
      return measurements.get(Math.min(begun.getAndIncrement(), measurements.size() - 1));
    }
  }

  @Test
  void whatOthersDisturbedIsUsedButNotKeptAndMeasuredAgain(@TempDir Path folder) {
    idle.set(true);
    DevicePeaks slow = new DevicePeaks(1e9, 4e9);
    DevicePeaks slower = new DevicePeaks(5e8, 1e9);
    Series bench =
        new Series(
            List.of(
                new PeakBench.Measurement(slow, 0.5), new PeakBench.Measurement(slower, 0.94), alone(PEAKS)),
            new AtomicInteger());
    PeakCache cache = new PeakCache(folder);
    List<DevicePeaks> kept = new ArrayList<>();
    new PeakWatch(
            bench,
            cache,
            SHORT,
            idle::get,
            peaks -> {
              found.add(peaks);
              kept.add(Objects.requireNonNullElse(cache.find("a CPU"), NOTHING));
            })
        .run();
    DevicePeaks best = new DevicePeaks(2e9, 4e9);
    assertThat(found).containsExactly(slow, slow, best);
    assertThat(kept).as("kept before the last was known").containsOnly(NOTHING);
    assertThat(cache.find("a CPU")).isEqualTo(best);
  }

  @Test
  void whatIsKeptIsRaisedByWhatIsSeenLaterButNothingIsKeptUnmeasured(@TempDir Path folder) throws Exception {
    PeakCache cache = new PeakCache(folder);
    PeakWatch watch = watch(new FakeBench("a CPU", 0), folder);
    watch.raise(PEAKS);
    assertThat(folder).isEmptyDirectory();
    cache.store("a CPU", PEAKS);
    watch.raise(new DevicePeaks(3e9, 1e9));
    assertThat(cache.find("a CPU")).isEqualTo(new DevicePeaks(3e9, 3e9));
  }

  @Test
  void whatWasKeptWithoutAWordAboutOthersIsMeasuredAgain(@TempDir Path folder) throws Exception {
    PeakCache cache = new PeakCache(folder);
    cache.store("a CPU", PEAKS);
    try (var files = Files.list(folder)) {
      Path stored = files.findFirst().orElseThrow();
      Files.writeString(stored, Files.readString(stored).replace("undisturbed=true", ""));
    }
    assertThat(cache.find("a CPU")).isNull();
  }

  /** Twice as many threads as there are CPUs take half of them from each other. */
  @Test
  void threadsThatShareCpusSayHowLittleTheyGot() {
    int threads = 2 * Runtime.getRuntime().availableProcessors();
    KernelPeakBench bench = new KernelPeakBench(KernelSelection.select("scalar").kernels(), DType.Q8_0, threads);
    PeakBench.Measurement measured = Objects.requireNonNull(bench.measure(() -> false));
    assertThat(measured.cpuShare()).isBetween(0.01, 0.8);
    assertThat(measured.isUndisturbed()).isFalse();
  }

  @Test
  void closingEndsAMeasurementAndTheWaitForOne(@TempDir Path cache) throws Exception {
    FakeBench bench = new FakeBench("a CPU", Integer.MAX_VALUE);
    PeakWatch measuring = watch(bench, cache);
    idle.set(true);
    Thread thread = Thread.startVirtualThread(measuring);
    Await.until("a measurement has begun", () -> bench.begun.get() == 1);
    measuring.close();
    thread.join();

    idle.set(false);
    PeakWatch waiting = watch(bench, cache);
    Thread other = Thread.startVirtualThread(waiting);
    waiting.close();
    other.join();
    assertThat(bench.begun).hasValue(1);
    assertThat(found).isEmpty();
    assertThat(cache).isEmptyDirectory();
  }

  @Test
  void aFileThatCannotBeReadOrWrittenIsNoFault(@TempDir Path folder) throws Exception {
    idle.set(true);
    Path cache = folder.resolve("cache");
    FakeBench bench = new FakeBench("a CPU", 0);
    watch(bench, cache).run();
    try (var files = Files.list(cache)) {
      Files.writeString(files.findFirst().orElseThrow(), "subject=a CPU\nflops_per_second=many\n");
    }
    watch(bench, cache).run();
    assertThat(bench.begun).as("measurements, one for each unreadable file").hasValue(2);
    watch(bench, Files.writeString(folder.resolve("file"), "")).run();
    assertThat(bench.begun).hasValue(3);
    assertThat(found).hasSize(3).containsOnly(PEAKS);
  }

  @Test
  void whatCannotBeStoredLeavesNothingBehind(@TempDir Path folder) throws Exception {
    PeakCache cache = new PeakCache(folder);
    cache.store("a CPU", PEAKS);
    Path stored;
    try (var files = Files.list(folder)) {
      stored = files.findFirst().orElseThrow();
    }
    Files.delete(stored);
    // A directory that is not empty cannot be replaced.
    Files.createDirectories(stored.resolve("in the way"));
    assertThatThrownBy(() -> cache.store("a CPU", PEAKS)).isInstanceOf(IOException.class);
    assertThat(folder).isDirectoryNotContaining(path -> path.toString().endsWith(".tmp"));
  }

  @Test
  void workOfAnyEngineInTheJvmCounts() {
    assertThat(EngineLoad.allIdle()).isTrue();
    EngineLoad one = new EngineLoad();
    EngineLoad other = new EngineLoad();
    one.open();
    other.open();
    one.submitted(2);
    other.submitted(1);
    one.ended(2);
    assertThat(EngineLoad.allIdle()).as("the other one's").isFalse();
    other.ended(1);
    assertThat(EngineLoad.allIdle()).isTrue();
    one.submitted(1);
    one.close();
    assertThat(EngineLoad.allIdle()).as("what an engine that has died still counts does not matter").isTrue();
    other.close();
  }

  @Test
  void aDeadEngineKeepsNobodyFromMeasuring() {
    ScriptedRunner failing =
        ScriptedRunner.endless()
            .during(
                step -> {
                  throw new OutOfMemoryError("injected");
                });
    try (Engine engine = ScriptedEngine.open(failing)) {
      GenerationHandle lost = engine.submit(GenerationRequest.of("a", SamplingParams.greedy()));
      assertThatThrownBy(() -> lost.completion().get(30, TimeUnit.SECONDS)).hasCauseInstanceOf(EngineException.class);
      Await.until("its requests do not count", EngineLoad::allIdle);
    }
  }

  @Test
  void oneMeasurementAtATime() throws Exception {
    KernelPeakBench bench = new KernelPeakBench(KernelSelection.select("scalar").kernels(), DType.Q8_0, 1);
    AtomicBoolean stop = new AtomicBoolean();
    AtomicBoolean second = new AtomicBoolean();
    AtomicInteger asked = new AtomicInteger();
    Thread first =
        Thread.ofPlatform()
            .start(
                () ->
                    bench.measure(
                        () -> {
                          asked.incrementAndGet();
                          return stop.get();
                        }));
    Await.until("the first measures", () -> asked.get() > 0);
    Thread other =
        Thread.ofPlatform()
            .start(
                () ->
                    bench.measure(
                        () -> {
                          second.set(true);
                          return true;
                        }));
    Await.until("the second waits or measures", () -> other.getState() == Thread.State.WAITING || second.get());
    assertThat(second).as("the second has begun beside the first").isFalse();
    stop.set(true);
    first.join();
    other.join();
    assertThat(second).isTrue();
  }

  @Test
  void theUsersCacheIsWhereTheDesktopStandardSays() {
    assertThat(PeakCache.ofUser(Map.of("XDG_CACHE_HOME", "/there")).directory()).isEqualTo(Path.of("/there/tacho"));
    for (Map<String, String> unset : List.<Map<String, String>>of(Map.of(), Map.of("XDG_CACHE_HOME", "a"))) {
      assertThat(PeakCache.ofUser(unset).directory())
          .isEqualTo(Path.of(System.getProperty("user.home"), ".cache", "tacho"));
    }
  }

  @Test
  void kernelsReachAPlausiblePeakAndStopForWork() {
    KernelPeakBench bench = new KernelPeakBench(KernelSelection.select("scalar").kernels(), DType.Q8_0, 2);
    PeakBench.Measurement measured = Objects.requireNonNull(bench.measure(() -> false));
    assertThat(measured.cpuShare()).isBetween(0.01, 1.01);
    DevicePeaks peaks = measured.peaks();
    assertThat(peaks.flopsPerSecond()).isBetween(1e7, 1e13);
    assertThat(peaks.bytesPerSecond()).isBetween(1e8, 1e13);
    assertThat(bench.subject()).contains("2 threads", "scalar");
    AtomicInteger questions = new AtomicInteger();
    assertThat(bench.measure(() -> questions.incrementAndGet() > 3)).isNull();
    assertThat(bench.measure(() -> true)).isNull();
  }
}
