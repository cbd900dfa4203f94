package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory sizes as text. */
class MemorySizeTest {
  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "1234, 1234",
    "4GiB, 4294967296",
    "512MiB, 536870912",
    "1.5GB, 1500000000",
    "1.5GiB, 1610612736",
    "4G, 4294967296",
    "4g, 4000000000",
    "2.5k, 2500",
    "1K, 1024",
    "'3 TiB', 3298534883328",
    "8388607TiB, 9223370937343148032"
  })
  void parses(String text, long bytes) {
    assertThat(MemorySize.parse(text)).isEqualTo(new MemorySize(bytes));
    assertThat(MemorySize.parse(new MemorySize(bytes).toString())).isEqualTo(new MemorySize(bytes));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "GiB", "-1", "1.5K", "1.5", "4 GiBs", "0x10", "8388608TiB", "1e9", "1,5GB"})
  void refuses(String text) {
    assertThatThrownBy(() -> MemorySize.parse(text)).isInstanceOf(IllegalArgumentException.class);
  }

  @ParameterizedTest
  @CsvSource({"0, 0 B", "1023, 1023 B", "1536, 1.5 KiB", "4294967296, 4.0 GiB", "1125899906842624, 1024.0 TiB"})
  void isReadable(long bytes, String text) {
    assertThat(new MemorySize(bytes).human()).isEqualTo(text);
  }
}
