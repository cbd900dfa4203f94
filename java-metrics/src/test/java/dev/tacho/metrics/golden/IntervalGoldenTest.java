package dev.tacho.metrics.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.stats.FinishedRequestStats;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * The computed interval cases: each is written as records into an engine ring and an output ring and drained, as an
 * engine's would be.
 *
 * <p>Where we differ on purpose (D), the expectation is ours:
 *
 * <table>
 *   <caption>differences</caption>
 *   <tr><td>requeued-twice</td><td>a request queued again after it was scheduled keeps its queue time; it is never
 *       negative</td></tr>
 * </table>
 */
class IntervalGoldenTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.cases("interval").map(c -> DynamicTest.dynamicTest(c.get("id").asText(), () -> run(c)));
  }

  private static void run(JsonNode golden) {
    IntervalReplay replay = new IntervalReplay(golden);
    JsonNode steps = golden.get("steps");
    for (int i = 0; i < steps.size(); i++) {
      JsonNode step = steps.get(i);
      JsonNode expected = golden.get("expected").get(i);
      List<IntervalReplay.Recorded> recorded = replay.run(step);
      switch (step.get("step").asText()) {
        case "add_request" -> assertThat(recorded).allSatisfy(r -> {
          assertThat(r.iterationTokens()).isZero();
          assertThat(r.finished()).isEmpty();
        });
        case "abort_by_client" -> {
          long ended = recorded.stream().mapToLong(r -> r.ended(FinishReason.ABORT)).sum();
          assertThat(ended).isEqualTo(golden.get("log_stats").asBoolean() ? expected.get("aborted").size() : 0);
          assertThat(recorded).allSatisfy(r -> assertThat(r.finished()).isEmpty());
        }
        default -> {
          if (expected.get("iteration_stats").isNull()) {
            assertThat(recorded).isEmpty();
          } else {
            assertThat(recorded).hasSize(1);
            compare(recorded.get(0), expected.get("iteration_stats"), replay);
          }
          assertThat(replay.stoppedInLastStep()).isEqualTo(expected.get("reqs_to_abort").size());
        }
      }
    }
  }

  private static void compare(IntervalReplay.Recorded got, JsonNode want, IntervalReplay replay) {
    assertThat(got.generationTokens()).isEqualTo(want.get("num_generation_tokens").asLong());
    JsonNode prompt = want.get("prompt_token_stats");
    assertThat(got.computed()).isEqualTo(prompt.get("computed").asLong());
    assertThat(got.local()).isEqualTo(prompt.get("local_cache_hit").asLong());
    assertThat(got.external()).isEqualTo(prompt.get("external_kv_transfer").asLong());
    assertThat(got.cached()).isEqualTo(prompt.get("cached_tokens").asLong());
    assertThat(got.total()).isEqualTo(prompt.get("total").asLong())
        .isEqualTo(want.get("num_prompt_tokens").asLong());
    assertThat(got.preemptions()).isEqualTo(want.get("num_preempted_reqs").asLong());
    assertThat(got.corrupted()).isEqualTo(want.get("num_corrupted_reqs").asLong());
    assertThat(got.iterationTokens()).isEqualTo(want.get("iteration_tokens_observation").asLong());
    close(got.timesToFirstToken(), want.get("time_to_first_tokens_iter"));
    close(got.interTokenLatencies(), want.get("inter_token_latencies_iter"));
    close(got.maxGenerationTokens(), want.get("max_num_generation_tokens_iter"));
    close(got.paramsN(), want.get("n_params_iter"));
    JsonNode finished = want.get("finished_requests");
    assertThat(got.finished()).hasSize(finished.size());
    for (int i = 0; i < finished.size(); i++) {
      compare(got.finished().get(i), finished.get(i), replay);
    }
  }

  private static void compare(FinishedRequestStats got, JsonNode want, IntervalReplay replay) {
    assertThat(got.reason()).isEqualTo(reason(want.get("finish_reason").asText()));
    assertThat(got.promptTokens()).isEqualTo(want.get("num_prompt_tokens").asInt());
    assertThat(got.generatedTokens()).isEqualTo(want.get("num_generation_tokens").asInt());
    assertThat(got.maxTokens()).isEqualTo(want.get("max_tokens_param").asInt(0));
    assertThat(got.cachedTokens()).isEqualTo(want.get("num_cached_tokens").asInt());
    assertThat(got.preemptions()).isEqualTo(want.get("num_preemptions").asInt());
    assertThat(got.corrupted()).isEqualTo(want.get("is_corrupted").asBoolean());
    close(got.endToEndSeconds(), want.get("e2e_latency").asDouble());
    close(got.prefillSeconds(), want.get("prefill_time").asDouble());
    close(got.decodeSeconds(), want.get("decode_time").asDouble());
    close(got.inferenceSeconds(), want.get("inference_time").asDouble());
    close(got.secondsPerOutputToken(), want.get("mean_time_per_output_token").asDouble());
    close(got.queuedSeconds(),
        replay.settledQueueSeconds(want.get("request_id").asText()).orElse(want.get("queued_time").asDouble()));
  }

  static FinishReason reason(String text) {
    return FinishReason.valueOf(text.toUpperCase(Locale.ROOT));
  }

  private static void close(List<Double> got, JsonNode want) {
    assertThat(got).hasSize(want.size());
    for (int i = 0; i < got.size(); i++) {
      close(got.get(i), want.get(i).asDouble());
    }
  }

  /** The expected numbers are differences of doubles in seconds, ours of whole nanoseconds. */
  private static void close(double got, double want) {
    assertThat(got).isCloseTo(want, within(1e-9 * Math.max(1, Math.abs(want))));
  }
}
