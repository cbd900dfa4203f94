package dev.tacho.engine.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.GoldenFile;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Recorded runs of the reference scheduler: ours takes the same decisions, step by step. */
class SchedulerGoldenTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.cases("scheduler", "/scheduler/scheduler-visible.json.gz")
        .map(traceCase -> DynamicTest.dynamicTest(traceCase.get("id").asText(), () -> replay(traceCase)));
  }

  private static void replay(JsonNode traceCase) {
    TraceReplayer replayer = new TraceReplayer(traceCase.get("config"));
    JsonNode ops = traceCase.get("ops");
    for (int i = 0; i < ops.size(); i++) {
      JsonNode op = ops.get(i);
      ObjectNode actual = replayer.execute(i, op);
      String where = traceCase.get("id").asText() + ", operation " + i + " " + op.get("op").asText() + ": ";
      compare(where, op.path("expect"), actual);
    }
    assertThat(replayer.audit()).as("audit").isTrue();
  }

  private static void compare(String where, JsonNode expected, JsonNode actual) {
    expected
        .properties()
        .forEach(
            e -> {
              JsonNode value = actual.get(e.getKey());
              if (e.getValue().isObject() && value != null && value.isObject()) {
                assertThat(value.size()).as(where + e.getKey() + " " + value).isEqualTo(e.getValue().size());
                compare(where + e.getKey() + ".", e.getValue(), value);
              } else {
                assertThat(String.valueOf(value)).as(where + e.getKey()).isEqualTo(e.getValue().toString());
              }
            });
  }
}
