package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.kv.KvLayout;
import dev.tacho.engine.kv.KvMemory;
import dev.tacho.engine.parallel.WorkerTeam;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import dev.tacho.metrics.perf.ExactWork;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.WorkEstimate;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Launch, await, failures, counters, memory and the end of a runner. */
class LlamaRunnerTest {
  private static final long WARM_UP_NANOS = 60_000_000_000L;
  private static final int[] PROMPT = new Random(3).ints(20, 0, TinyModel.VOCABULARY).toArray();

  @TempDir Path folder;

  private ModelRig rig(Kernels kernels, ModelRig.Shape shape) {
    return new ModelRig(new TinyModel(9, DType.F32).write(folder.resolve("model.gguf")), kernels, shape);
  }

  private ModelRig rig() {
    return rig(TestKernels.scalar(), ModelRig.Shape.f32(2));
  }

  /** Kernels of which one operation throws while there is a failure to throw. */
  private static Kernels failing(String operation, AtomicReference<Throwable> failure) {
    Kernels kernels = TestKernels.scalar();
    return (Kernels)
        Proxy.newProxyInstance(
            Kernels.class.getClassLoader(),
            new Class<?>[] {Kernels.class},
            (proxy, method, args) -> {
              Throwable thrown = failure.get();
              if (method.getName().equals(operation) && thrown != null) {
                throw thrown;
              }
              try {
                return method.invoke(kernels, args);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  @ParameterizedTest(name = "{0}")
  @ValueSource(strings = {"embeddingLookup", "attention", "matmul", "siluMul", "kvWrite"})
  void aFailureInAWorkerComesOutOfAwaitAndTheNextStepRuns(String operation) {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    int[] expected;
    try (ModelRig rig = rig()) {
      expected = rig.generate(PROMPT, 6);
    }
    try (ModelRig rig = rig(failing(operation, failure), ModelRig.Shape.f32(2))) {
      failure.set(new IllegalStateException("injected"));
      Sequence lost = rig.add("lost", PROMPT, 6);
      StepPlan plan = rig.schedule();
      StepHandle handle = rig.runner().launch(plan);
      assertThatThrownBy(() -> rig.runner().await(handle)).isSameAs(failure.get());
      rig.fail(plan);
      assertThat(lost.isLive()).isFalse();
      failure.set(null);
      assertThat(rig.generate(PROMPT, 6)).isEqualTo(expected);
    }
  }

  @Test
  void aFailureWithAStepBehindItLeavesTheRunnerReady() {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    int[] expected;
    try (ModelRig rig = rig()) {
      expected = rig.generate(PROMPT, 6);
    }
    try (ModelRig rig = rig(failing("attention", failure), ModelRig.Shape.f32(2).asynchronous())) {
      for (int round = 0; round < 20; round++) {
        failure.set(new IllegalStateException("injected"));
        Sequence lost = rig.add("lost", PROMPT, 6);
        StepPlan plan = rig.schedule();
        StepHandle handle = rig.runner().launch(plan);
        StepPlan behind = rig.schedule();
        assertThat(behind.sequence(0)).isSameAs(lost);
        StepHandle handleBehind = rig.runner().launch(behind);
        assertThatThrownBy(() -> rig.runner().await(handle)).isSameAs(failure.get());
        assertThatThrownBy(() -> rig.runner().await(handleBehind)).isSameAs(failure.get());
        rig.fail(plan);
        rig.fail(behind);
        assertThat(lost.isLive()).isFalse();
        failure.set(null);
        assertThat(rig.generate(PROMPT, 6)).isEqualTo(expected);
      }
    }
  }

  @Test
  void twoStepsAreInFlightAtATimeAndTheOldestIsAwaitedFirst() {
    try (ModelRig rig = rig()) {
      rig.add("first", PROMPT, 4);
      StepPlan plan = rig.schedule();
      StepHandle first = rig.runner().launch(plan);
      StepHandle second = rig.runner().launch(plan);
      assertThatThrownBy(() -> rig.runner().launch(plan)).hasMessage("2 steps are in flight");
      assertThatThrownBy(() -> rig.runner().await(second)).isInstanceOf(IllegalStateException.class);
      int token = rig.runner().await(first).token(0, 0);
      assertThat(rig.runner().await(second).token(0, 0)).as("the same step again").isEqualTo(token);
      assertThatThrownBy(() -> rig.runner().await(second)).isInstanceOf(IllegalStateException.class);
    }
  }

  /** A plan with a placeholder, and the step that should sample it awaited already or not launched at all. */
  @Test
  void aTokenThatNoStepInFlightSamplesIsRefused() {
    try (ModelRig rig = rig(TestKernels.scalar(), ModelRig.Shape.f32(1).asynchronous())) {
      rig.add("first", PROMPT, 4);
      StepHandle handle = rig.runner().launch(rig.schedule());
      StepPlan following = rig.schedule();
      assertThat(following.startPosition(0)).isEqualTo(PROMPT.length);
      rig.runner().await(handle);
      assertThatThrownBy(() -> rig.runner().launch(following))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("first");
    }
  }

  @Test
  void aResultStaysGoodWhileTheNextStepRuns() {
    try (ModelRig rig = rig()) {
      rig.add("only", PROMPT, 4);
      StepPlan plan = rig.schedule();
      StepResult first = rig.runner().await(rig.runner().launch(plan));
      int token = first.token(0, 0);
      rig.update(plan, first);
      StepHandle second = rig.runner().launch(rig.schedule());
      assertThat(first.token(0, 0)).isEqualTo(token);
      assertThat(rig.runner().await(second)).isNotSameAs(first);
      assertThat(first.token(0, 0)).isEqualTo(token);
    }
  }

  @Test
  void anEmptyStepGivesAnEmptyResult() {
    try (ModelRig rig = rig()) {
      StepPlan plan = rig.schedule();
      assertThat(plan.numTokens()).isZero();
      assertThat(rig.runner().await(rig.runner().launch(plan)).numSequences()).isZero();
    }
  }

  @Test
  void aChunkInTheMiddleOfAPromptSamplesNothing() {
    try (ModelRig rig = rig(TestKernels.scalar(), ModelRig.Shape.f32(2).withMaxTokens(16))) {
      rig.add("only", PROMPT, 4);
      StepPlan plan = rig.schedule();
      StepResult result = rig.runner().await(rig.runner().launch(plan));
      assertThat(result.numSequences()).isEqualTo(1);
      assertThat(result.tokenCount(0)).isZero();
    }
  }

  @ParameterizedTest(name = "token {0}")
  @ValueSource(ints = {-1, TinyModel.VOCABULARY, Integer.MAX_VALUE})
  void aTokenOutsideTheVocabularyIsRefusedBeforeAnythingRuns(int id) {
    try (ModelRig rig = rig()) {
      rig.add("odd", new int[] {1, id, 2}, 4);
      StepPlan plan = rig.schedule();
      assertThatThrownBy(() -> rig.runner().launch(plan))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("odd")
          .hasMessageContaining("token " + id + " at position 1")
          .hasMessageContaining("200");
      rig.fail(plan);
      assertThat(rig.generate(PROMPT, 4)).hasSize(4);
    }
  }

  @Test
  void aStepThatIsTooLargeIsRefused() {
    Path model = new TinyModel(9, DType.F32).write(folder.resolve("model.gguf"));
    try (ModelRig large = new ModelRig(model, TestKernels.scalar(), ModelRig.Shape.f32(1));
        ModelRig small = new ModelRig(model, TestKernels.scalar(), ModelRig.Shape.f32(1).withMaxTokens(16))) {
      large.add("long", PROMPT, 4);
      assertThatThrownBy(() -> small.runner().launch(large.schedule()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("20 tokens");
    }
  }

  @Test
  void aBlockOutsideTheCacheIsRefused() {
    Path model = new TinyModel(9, DType.F32).write(folder.resolve("model.gguf"));
    ModelRig.Shape few = ModelRig.Shape.f32(1).withMaxTokens(64).withMaxSequences(1).withMaxContext(32);
    try (ModelRig large = new ModelRig(model, TestKernels.scalar(), ModelRig.Shape.f32(1));
        ModelRig small = new ModelRig(model, TestKernels.scalar(), few)) {
      large.add("first", new int[32], 4);
      large.add("second", new int[32], 4);
      StepPlan plan = large.schedule();
      assertThat(plan.numSequences()).isEqualTo(2);
      large.runner().await(large.runner().launch(plan));
      assertThatThrownBy(() -> small.runner().launch(plan)).isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void aSlidingWindowHidesWhatLiesBeforeIt() {
    int window = 6;
    int seen = TinyModel.LAYERS * (window - 1) + 1;
    Path model =
        new TinyModel(9, DType.F32)
            .number("llama.attention.sliding_window", window)
            .write(folder.resolve("windowed.gguf"));
    try (ModelRig rig = new ModelRig(model, TestKernels.scalar(), ModelRig.Shape.f32(2))) {
      rig.generate(PROMPT, 1);
      float[] logits = rig.logits("only").getFirst();
      int[] prompt = PROMPT.clone();
      prompt[PROMPT.length - seen - 1]++;
      rig.generate(prompt, 1);
      assertThat(rig.logits("only").getFirst()).as("the last token out of reach").isEqualTo(logits);
      prompt[PROMPT.length - seen]++;
      rig.generate(prompt, 1);
      assertThat(rig.logits("only").getFirst()).as("the first token in reach").isNotEqualTo(logits);
    }
  }

  @Test
  void aCacheOfAnotherShapeIsRefused() {
    Path model = new TinyModel(9, DType.F32).write(folder.resolve("model.gguf"));
    KvLayout layout = new KvLayout(TinyModel.LAYERS + 1, TinyModel.KV_HEADS, TinyModel.HEAD_DIM, DType.F32);
    try (ModelRig rig = new ModelRig(model, TestKernels.scalar(), ModelRig.Shape.f32(1));
        KvMemory memory = new KvMemory(layout, 8, TestKernels.scalar());
        WorkerTeam team = new WorkerTeam("refused", 1)) {
      assertThatThrownBy(() -> new LlamaRunner(rig.weights(), memory, new RunnerLimits(8, 1, 64, 0), team))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("3 layers");
    }
  }

  @Test
  void countersGrowByTheWorkOfTheShapesWhateverTheThreads() {
    for (int threads : new int[] {1, 2, 3}) {
      try (ModelRig rig = rig(TestKernels.scalar(), ModelRig.Shape.f32(threads))) {
        rig.add("only", PROMPT, 2);
        rig.step();
        long perToken =
            2L * TinyModel.LAYERS * TinyModel.EMBEDDING * (64 + 32 + 32 + 64 + 3 * TinyModel.FEED_FORWARD);
        long added = 2L * TinyModel.LAYERS * TinyModel.EMBEDDING;
        long output = 2L * TinyModel.EMBEDDING * TinyModel.VOCABULARY;
        assertThat(rig.runner().counters(Operation.MATMUL).flops()).isEqualTo(20 * (perToken + added) + output);
        long keys = 20 * 21 / 2;
        assertThat(rig.runner().counters(Operation.ATTENTION).flops())
            .isEqualTo(TinyModel.LAYERS * 4 * keys * TinyModel.HEADS * TinyModel.HEAD_DIM);
        assertThat(rig.runner().counters(Operation.EMBEDDING_LOOKUP).flops()).isZero();
        long norm = 4L * TinyModel.EMBEDDING;
        long norms = 2L * TinyModel.LAYERS;
        assertThat(rig.runner().counters(Operation.RMS_NORM).flops()).isEqualTo(norm * (norms * 20 + 1));
        rig.step();
        assertThat(rig.runner().counters(Operation.RMS_NORM).flops())
            .as("a single row, which every member norms for itself").isEqualTo(norm * (norms * 21 + 2));
        assertThat(rig.runner().counters(Operation.EMBEDDING_LOOKUP).writeBytes())
            .isEqualTo(21L * TinyModel.EMBEDDING * Float.BYTES);
      }
    }
  }

  @Test
  void countersOfOneWorkerAreTheExactWorkOfTheShapes() {
    ExactWork exact = new ExactWork(ModelShape.dense(TinyModel.LAYERS, TinyModel.EMBEDDING, TinyModel.HEADS,
        TinyModel.KV_HEADS, TinyModel.HEAD_DIM, TinyModel.FEED_FORWARD, TinyModel.VOCABULARY, 4, 4, 4));
    try (ModelRig rig = rig(TestKernels.scalar(), ModelRig.Shape.f32(1))) {
      long[] before = counted(rig);
      rig.add("only", PROMPT, 3);
      rig.step();
      rig.step();
      long[] after = counted(rig);
      WorkEstimate expected = new WorkEstimate();
      exact.add(PROMPT.length, 0, 1);
      exact.count(expected);
      exact.reset();
      exact.add(1, PROMPT.length, 1);
      exact.count(expected);
      assertThat(new long[] {after[0] - before[0], after[1] - before[1], after[2] - before[2]})
          .containsExactly(expected.flops(), expected.readBytes(), expected.writeBytes());
    }
  }

  @Test
  void everyOperationOfAStepTellsItsNanosecondsAndTogetherTheyAreNoMoreThanTheMembersHad() {
    int threads = 2;
    try (ModelRig rig = rig(TestKernels.scalar(), ModelRig.Shape.f32(threads))) {
      rig.add("only", PROMPT, 3);
      rig.step();
      rig.step();
      long sum = 0;
      for (Operation operation : Operation.values()) {
        OperationCounters counters = rig.runner().counters(operation);
        assertThat(counters.nanos() > 0).as("%s of %s", operation, counters).isEqualTo(counters.calls() > 0);
        sum += counters.nanos();
      }
      assertThat(sum).isLessThanOrEqualTo(threads * rig.runner().busyNanos());
    }
  }

  private static long[] counted(ModelRig rig) {
    long[] sums = new long[3];
    for (Operation operation : Operation.values()) {
      OperationCounters counters = rig.runner().counters(operation);
      sums[0] += counters.flops();
      sums[1] += counters.readBytes();
      sums[2] += counters.writeBytes();
    }
    return sums;
  }

  @Test
  void countersOutliveTheRunner() {
    ModelRig rig = rig();
    rig.generate(PROMPT, 3);
    OperationCounters before = rig.runner().counters(Operation.MATMUL);
    rig.close();
    assertThat(rig.runner().counters(Operation.MATMUL)).isEqualTo(before);
  }

  @Test
  void closeWaitsForTheStepInFlightAndRefusesTheNext() {
    ModelRig rig = rig();
    rig.add("only", PROMPT, 3);
    StepPlan plan = rig.schedule();
    rig.runner().launch(plan);
    rig.runner().close();
    rig.runner().close();
    assertThat(rig.runner().counters(Operation.MATMUL).flops()).as("the step ran to its end").isPositive();
    assertThatThrownBy(() -> rig.runner().launch(plan))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
    rig.close();
  }

  @Test
  void theScratchIsComputedBeforeItIsTaken() {
    try (ModelRig rig = rig()) {
      ModelConfig config = rig.config();
      long small = LlamaRunner.scratchBytes(config, new RunnerLimits(64, 4, 256, 0), TestKernels.scalar(), 2);
      long large = LlamaRunner.scratchBytes(config, new RunnerLimits(128, 4, 256, 0), TestKernels.scalar(), 2);
      long rowFloats = 2 * 64 + 2 * 64 + 2 * 32 + 2 * TinyModel.FEED_FORWARD + 16;
      long packed = 192 + 192; // 36 bytes for 32 elements of 64 and of 96, in an odd number of cache lines
      long rowBytes = rowFloats * Float.BYTES + packed;
      assertThat(large - small).isBetween(64 * rowBytes, 64 * (rowBytes + 32 * Float.BYTES));
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("dev.tacho.engine.model.TestKernels#all")
  void aStepAllocatesNothingOnAnyThread(Kernels kernels) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (ModelRig rig = rig(kernels, ModelRig.Shape.f32(2))) {
      for (int i = 0; i < 4; i++) {
        rig.add("sequence " + i, PROMPT, 480);
      }
      rig.step();
      StepPlan plan = rig.schedule();
      assertThat(plan.numTokens()).as("four decodes").isEqualTo(4);
      long[] ids = workersAndSelf();
      int steps = 100;
      long bytes = Long.MAX_VALUE;
      // Segments' slices are free only once the compilers have done with the kernels; when that is, they decide.
      long deadline = System.nanoTime() + WARM_UP_NANOS;
      while (bytes > 0 && System.nanoTime() - deadline < 0) {
        long before = allocatedBytes(threads, ids);
        for (int i = 0; i < steps; i++) {
          rig.runner().await(rig.runner().launch(plan));
        }
        bytes = allocatedBytes(threads, ids) - before;
      }
      assertThat(bytes).as("bytes in the last %s steps, by %s threads", steps, ids.length).isZero();
    }
  }

  private static long[] workersAndSelf() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(t -> t == Thread.currentThread() || t.getName().startsWith("rig-worker-"))
        .mapToLong(Thread::threadId)
        .toArray();
  }

  /** Asks thread by thread: for an array of threads the question itself allocates an array of answers. */
  private static long allocatedBytes(ThreadMXBean threads, long[] ids) {
    long sum = 0;
    for (long id : ids) {
      sum += threads.getThreadAllocatedBytes(id);
    }
    return sum;
  }
}
