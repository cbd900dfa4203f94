package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.golden.GoldenFile;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class NumberFormatTest {
  @TestFactory
  Stream<DynamicTest> golden() {
    return GoldenFile.cases("stats").filter(c -> c.get("kind").asText().equals("float_text"))
        .map(c -> DynamicTest.dynamicTest(c.get("id").asText(), () -> compare(c)));
  }

  private static void compare(JsonNode golden) {
    double value = Double.longBitsToDouble(Long.parseUnsignedLong(golden.get("input_bits_hex").asText(), 16));
    assertThat(NumberFormat.format(value)).isEqualTo(golden.get("expected").asText());
  }

  @ParameterizedTest
  @CsvSource({
    "0.0, 0.0", "-0.0, -0.0", "7, 7.0", "999999.5, 999999.5", "1234567.25, 1.23456725e+06", "-1000000, -1000000.0",
    "-1234567.5, -1234567.5", "0.00001, 1e-05", "0.00012, 0.00012", "1e100, 1e+100", "2.5e-10, 2.5e-10",
    "1e16, 1e+16", "-1e16, -1e+16", "123456789, 1.23456789e+08", "NaN, NaN"
  })
  void asPythonWritesIt(double value, String text) {
    assertThat(NumberFormat.format(value)).isEqualTo(text);
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3})
  void readsBackAsTheSameNumber(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < 20_000; i++) {
      double value = Double.longBitsToDouble(random.nextLong());
      if (Double.isFinite(value)) {
        assertThat(Double.parseDouble(NumberFormat.format(value))).isEqualTo(value);
      }
      double small = random.nextInt(2_000_000) / 1000.0;
      assertThat(Double.parseDouble(NumberFormat.format(small))).isEqualTo(small);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {4, 5})
  void theFastWayForCountsIsTheSame(long seed) {
    Random random = new Random(seed);
    TextBuffer buffer = new TextBuffer();
    for (int i = 0; i < 5_000; i++) {
      long value = random.nextLong(1L << random.nextInt(1, 40));
      buffer.clear();
      buffer.line(new byte[0], value);
      assertThat(buffer.toString()).isEqualTo(NumberFormat.format((double) value) + "\n");
      buffer.clear();
      buffer.line(new byte[0], (double) value);
      assertThat(buffer.toString()).isEqualTo(NumberFormat.format((double) value) + "\n");
    }
  }
}
