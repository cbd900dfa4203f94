package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.metrics.Await;
import dev.tacho.metrics.event.FinishReason;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A request that is cancelled while its long prompt is computed costs no more than the steps already launched. */
@Timeout(120)
class CancelDuringPrefillTest {
  private static final int BUDGET = 256;
  private static final int PROMPT = 3000;
  private static final int CANCELLED_IN = 3;

  /** Tokens of a step by request. */
  private record Share(String requestId, int tokens) {}

  private static List<Share> shares(StepPlan plan) {
    List<Share> shares = new ArrayList<>();
    for (int i = 0; i < plan.numSequences(); i++) {
      shares.add(new Share(plan.sequence(i).requestId(), plan.scheduledTokens(i)));
    }
    return shares;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void oneOfEightIsGoneFromTheNextPlanAndTheOthersHaveItsPlace(boolean async) throws Exception {
    List<List<Share>> plans = new CopyOnWriteArrayList<>();
    List<GenerationHandle> handles = new CopyOnWriteArrayList<>();
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .seeing(plan -> plans.add(shares(plan)))
            .during(
                step -> {
                  if (step == 1) {
                    Await.until("all eight are submitted", () -> handles.size() == 8);
                  } else if (step == CANCELLED_IN) {
                    handles.getFirst().cancel();
                  }
                });
    ScriptedEngine scripted =
        ScriptedEngine.over(runner)
            .maxNumBatchedTokens(BUDGET)
            .with(options -> options.asyncScheduling(async).longPrefillTokenThreshold(BUDGET / 2));
    try (Engine engine = scripted.open()) {
      for (int i = 0; i < 8; i++) {
        int[] prompt = new int[PROMPT];
        Arrays.fill(prompt, '0' + i);
        // Token ids: what is tokenised first comes in whenever its thread gets there.
        handles.add(
            engine.submit(
                GenerationRequest.builder()
                    .prompt(prompt)
                    .sampling(SamplingParams.greedy().withMaxTokens(2))
                    .build()));
      }
      for (GenerationHandle handle : handles) {
        FinishReason reason = handle == handles.getFirst() ? FinishReason.ABORT : FinishReason.LENGTH;
        assertThat(handle.completion().get(60, TimeUnit.SECONDS).finishReason()).isEqualTo(reason);
      }
    }
    String cancelled = handles.getFirst().requestId();
    int launched = CANCELLED_IN + (async ? 1 : 0);
    assertThat(plans.get(launched - 1)).anyMatch(share -> share.requestId().equals(cancelled));
    for (List<Share> later : plans.subList(launched, plans.size())) {
      assertThat(later).noneMatch(share -> share.requestId().equals(cancelled));
    }
    assertThat(plans.get(launched).stream().mapToInt(Share::tokens).sum()).isEqualTo(BUDGET);
  }
}
