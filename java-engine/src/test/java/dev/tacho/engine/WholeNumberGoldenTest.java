package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Numbers on the command line: the same texts are taken, with the same values. */
class WholeNumberGoldenTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.stats("cli_human_readable_int")
        .map(c -> DynamicTest.dynamicTest(c.get("id").asText(), () -> check(c)));
  }

  private static void check(JsonNode c) {
    String input = c.get("input").asText();
    if (c.get("accepted").asBoolean()) {
      assertThat(WholeNumber.parse(input)).isEqualTo(c.get("expected").asLong());
    } else {
      assertThatThrownBy(() -> WholeNumber.parse(input))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("'" + input + "'");
    }
  }
}
