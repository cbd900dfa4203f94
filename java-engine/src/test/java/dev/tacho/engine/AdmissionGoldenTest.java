package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Who is refused at the door, and under which reason it is counted. Here one gate stands before all engines, so what
 * other servers of the reference have unfinished is in it as well. The HTTP answer is the server's.
 */
class AdmissionGoldenTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.stats("admission_check")
        .map(c -> DynamicTest.dynamicTest(c.get("id").asText(), () -> check(c)));
  }

  private static void check(JsonNode c) {
    int unfinished = c.get("unfinished_requests").asInt();
    for (JsonNode other : c.get("unfinished_in_other_api_servers")) {
      unfinished += other.asInt();
    }
    EngineConfig.Builder config =
        EngineConfig.builder().model(Path.of("m.gguf")).disableLogStats(!c.get("log_stats").asBoolean());
    if (!c.get("max_num_queued_reqs").isNull()) {
      config.maxNumQueuedReqs(c.get("max_num_queued_reqs").asInt());
    }
    if (!c.get("max_num_queued_tokens").isNull()) {
      config.maxNumQueuedTokens(c.get("max_num_queued_tokens").asInt());
    }
    CounterPage counters = new CounterPage();
    AdmissionGate gate = new AdmissionGate(config.build(), counters);
    gate.enter(unfinished);
    c.get("prompt_lengths_still_prefilling").forEach(tokens -> gate.queue(tokens.asLong()));
    boolean accepted = true;
    try {
      gate.enter(c.get("n").asInt());
    } catch (OverloadedException e) {
      accepted = false;
    }
    List<String> counted = new ArrayList<>();
    if (counters.get(EngineCounter.REJECTED_REQUESTS) == 1) {
      counted.add("max_num_queued_reqs");
    }
    if (counters.get(EngineCounter.REJECTED_TOKENS) == 1) {
      counted.add("max_num_queued_tokens");
    }
    JsonNode expected = c.get("expected");
    assertThat(accepted).isEqualTo(expected.get("accepted").asBoolean());
    List<String> reasons = new ArrayList<>();
    expected.get("counted_reasons").forEach(reason -> reasons.add(reason.asText()));
    assertThat(counted).isEqualTo(reasons);
    assertThat(expected.get("http_status").asInt(200)).isEqualTo(accepted ? 200 : 503);
  }
}
