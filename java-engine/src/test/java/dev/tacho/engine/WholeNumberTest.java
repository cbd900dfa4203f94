package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Numbers on the command line, beyond the computed cases. */
class WholeNumberTest {
  @ParameterizedTest
  @CsvSource({
    "1M, 1048576", "3G, 3221225472", "2T, 2199023255552", "1.9999k, 1999", "'  8 ', 8", "1_000, 1000", "+5, 5",
    "9223372036854775807, 9223372036854775807"
  })
  void reads(String text, long value) {
    assertThat(WholeNumber.parse(text)).isEqualTo(value);
  }

  @ParameterizedTest
  @ValueSource(strings = {"1.5K", "1.5", "1 k", "-1k", "4GiB", "1kB", "9223372036854775808", "9000000000t", "8388608T"})
  void refuses(String text) {
    assertThatThrownBy(() -> WholeNumber.parse(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'" + text + "'");
  }
}
