package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Kernels that leave NaN among the logits: the ids stay ids, and the sequence is marked. */
@Timeout(60)
class NanLogitsTest {
  private static final int TOKENS = 12;
  private static final List<SamplingParams> KINDS =
      List.of(
          params().temperature(0).build(),
          params().temperature(0).logprobs(5).build(),
          params().temperature(1).build(),
          params().temperature(0.7).topK(5).logprobs(3).build(),
          params().temperature(1).topP(0.4).minP(0.1).build());

  private static SamplingParams.Builder params() {
    return SamplingParams.builder().maxTokens(TOKENS).ignoreEos(true).seed(4);
  }

  @TempDir Path folder;

  /** Kernels whose last matmul writes NaN for some tokens of every row. */
  private static Kernels poisoned(IntPredicate tokens) {
    Kernels kernels = TestKernels.scalar();
    return (Kernels)
        Proxy.newProxyInstance(
            Kernels.class.getClassLoader(),
            new Class<?>[] {Kernels.class},
            (proxy, method, args) -> {
              Object result = method.invoke(kernels, args);
              if (method.getName().equals("matmul") && args[5].equals(TinyModel.VOCABULARY)) {
                int end = Math.min((int) args[8] * Kernels.ROW_GROUP, TinyModel.VOCABULARY);
                for (int id = (int) args[7] * Kernels.ROW_GROUP; id < end; id++) {
                  for (int row = 0; row < (int) args[3] && tokens.test(id); row++) {
                    long at = (long) row * TinyModel.VOCABULARY + id;
                    ((MemorySegment) args[4]).setAtIndex(ValueLayout.JAVA_FLOAT, at, Float.NaN);
                  }
                }
              }
              return result;
            });
  }

  private List<Sequence> run(Kernels kernels, boolean expectNan) {
    Path model = new TinyModel(9, DType.F32).write(folder.resolve("model.gguf"));
    List<Sequence> sequences = new ArrayList<>();
    try (ModelRig rig = new ModelRig(model, kernels, ModelRig.Shape.f32(2))) {
      for (SamplingParams params : KINDS) {
        sequences.add(rig.add("sequence " + sequences.size(), new int[] {1, 2, 3}, params));
      }
      for (int step = 0; step < TOKENS; step++) {
        StepPlan plan = rig.schedule();
        StepResult result = rig.runner().await(rig.runner().launch(plan));
        for (int i = 0; i < plan.numSequences(); i++) {
          assertThat(result.hasNan(i)).isEqualTo(expectNan);
        }
        rig.update(plan, result);
      }
    }
    return sequences;
  }

  @ParameterizedTest(name = "every token but multiples of {0}")
  @ValueSource(ints = {2, 3, 50, 1000})
  void theChosenIdsAreThoseWithoutNan(int good) {
    for (Sequence sequence : run(poisoned(id -> id % good != 0), true)) {
      int[] ids = ModelRig.output(sequence);
      assertThat(ids).as(sequence.requestId()).hasSize(TOKENS);
      for (int id : ids) {
        assertThat(id).as(sequence.requestId()).isBetween(0, TinyModel.VOCABULARY - 1);
        assertThat(id % good).as(sequence.requestId()).isZero();
      }
    }
  }

  @Test
  void aRowOfNothingButNanGivesAnId() {
    for (Sequence sequence : run(poisoned(id -> true), true)) {
      assertThat(ModelRig.output(sequence)).hasSize(TOKENS);
      for (int id : ModelRig.output(sequence)) {
        assertThat(id).as(sequence.requestId()).isBetween(0, TinyModel.VOCABULARY - 1);
      }
    }
  }

  @Test
  void withoutNanNothingIsMarked() {
    assertThat(run(TestKernels.scalar(), false)).hasSize(KINDS.size());
  }
}
