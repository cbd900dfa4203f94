package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.DType;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** What the metadata say, and each way in which they cannot be right. */
class ModelConfigTest {
  @TempDir Path folder;

  private static TinyModel model() {
    return new TinyModel(1, DType.F32);
  }

  private ModelConfig read(TinyModel model) {
    try (GgufFile file = GgufFile.open(model.write(folder.resolve("model.gguf")))) {
      return ModelConfig.of(file);
    }
  }

  @Test
  void readsAllValuesAndFillsInDefaults() {
    ModelConfig config = read(model());
    assertThat(config.architecture()).isEqualTo("llama");
    assertThat(config.layers()).isEqualTo(2);
    assertThat(config.embeddingLength()).isEqualTo(64);
    assertThat(config.feedForwardLength()).isEqualTo(96);
    assertThat(config.heads()).isEqualTo(4);
    assertThat(config.kvHeads()).isEqualTo(2);
    assertThat(config.headDim()).as("embedding / heads").isEqualTo(16);
    assertThat(config.rmsEpsilon()).isEqualTo(1e-5f);
    assertThat(config.contextLength()).isEqualTo(512);
    assertThat(config.vocabSize()).as("rows of the embedding table").isEqualTo(200);
    assertThat(config.slidingWindow()).isZero();
    assertThat(config.rope().dimensions()).as("the whole head").isEqualTo(16);
    assertThat(config.rope().base()).isEqualTo(10_000);
    assertThat(config.rope().linearFactor()).isEqualTo(1);
    assertThat(config.queryLength()).isEqualTo(64);
    assertThat(config.keyValueLength()).isEqualTo(32);
  }

  @Test
  void headSizeNeedNotBeEmbeddingOverHeads() {
    ModelConfig config =
        read(model().number("llama.attention.key_length", 32).number("llama.attention.value_length", 32));
    assertThat(config.headDim()).isEqualTo(32);
    assertThat(config.queryLength()).isEqualTo(128);
    assertThat(config.attentionShape().scale()).isEqualTo((float) (1 / Math.sqrt(32)));
  }

  @Test
  void withoutKvHeadsEachQueryHeadHasItsOwn() {
    assertThat(read(model().without("llama.attention.head_count_kv")).kvHeads()).isEqualTo(4);
  }

  @Test
  void theSameNumberForEveryLayerIsOneNumber() {
    String key = "llama.attention.head_count_kv";
    assertThat(read(model().key(key, writer -> writer.integers(key, 2, 2))).kvHeads()).isEqualTo(2);
  }

  @Test
  void differentNumbersForLayersAreUnsupported() {
    String key = "llama.attention.head_count_kv";
    assertThatThrownBy(() -> read(model().key(key, writer -> writer.integers(key, 2, 4))))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining(key)
        .hasMessageContaining("2 and 4");
  }

  @Test
  void anUnknownArchitectureNamesTheKnownOnes() {
    assertThatThrownBy(() -> read(model().text("general.architecture", "mamba")))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("mamba")
        .hasMessageContaining("llama");
  }

  @Test
  void mixturesOfExpertsAreUnsupported() {
    assertThatThrownBy(() -> read(model().number("llama.expert_count", 8)))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("llama.expert_count 8");
  }

  @Test
  void yarnIsUnsupported() {
    assertThatThrownBy(() -> read(model().text("llama.rope.scaling.type", "yarn")))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("llama.rope.scaling.type yarn");
  }

  @Test
  void valuesOfAnotherLengthThanKeysAreUnsupported() {
    assertThatThrownBy(() -> read(model().number("llama.attention.value_length", 32)))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("llama.attention.value_length 32")
        .hasMessageContaining("16");
  }

  @ParameterizedTest(name = "type {0}, {1} {2}: factor {3}")
  @CsvSource({
    "linear, rope.scaling.factor, 4, 4",
    "linear, rope.scale_linear, 2, 2",
    "none, rope.scaling.factor, 4, 1",
    "linear, rope.scaling.factor, 0, 1",
  })
  void linearScalingDividesPositions(String type, String name, float value, double factor) {
    ModelConfig config = read(model().text("llama.rope.scaling.type", type).real("llama." + name, value));
    assertThat(config.rope().linearFactor()).isEqualTo(factor);
  }

  @Test
  void aFactorWithoutTypeIsLinear() {
    assertThat(read(model().real("llama.rope.scaling.factor", 8)).rope().linearFactor()).isEqualTo(8);
  }

  @Test
  void moreTokensThanEmbeddingsAreAFault() {
    String key = "tokenizer.ggml.tokens";
    var tokens = Stream.generate(() -> "x").limit(201).toList();
    assertThatThrownBy(() -> read(model().key(key, writer -> writer.strings(key, tokens))))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining(key)
        .hasMessageContaining("201")
        .hasMessageContaining("200");
  }

  static Stream<Arguments> wrongNumbers() {
    return Stream.of(
        Arguments.of("llama.block_count", 0L),
        Arguments.of("llama.block_count", 0xFFFFFFFFL),
        Arguments.of("llama.embedding_length", 0L),
        Arguments.of("llama.embedding_length", 1L << 21),
        Arguments.of("llama.feed_forward_length", 1L << 23),
        Arguments.of("llama.attention.head_count", 0L),
        Arguments.of("llama.attention.head_count", 6L),
        Arguments.of("llama.attention.head_count", 32L * 1024),
        Arguments.of("llama.attention.head_count_kv", 3L),
        Arguments.of("llama.attention.head_count_kv", 8L),
        Arguments.of("llama.attention.key_length", 15L),
        Arguments.of("llama.attention.key_length", 1024L),
        Arguments.of("llama.rope.dimension_count", 18L),
        Arguments.of("llama.rope.dimension_count", 7L),
        Arguments.of("llama.context_length", 0L),
        Arguments.of("llama.context_length", 1L),
        Arguments.of("llama.context_length", 1L << 30),
        Arguments.of("llama.vocab_size", 0L),
        Arguments.of("llama.vocab_size", 1L << 31));
  }

  @ParameterizedTest(name = "{0} = {1}")
  @MethodSource("wrongNumbers")
  void aNumberOutOfRangeNamesKeyValueAndLimit(String key, long value) {
    assertThatThrownBy(() -> read(model().number(key, value)))
        .isInstanceOfSatisfying(
            ModelFormatException.class,
            fault -> {
              assertThat(fault.field()).isEqualTo(key);
              assertThat(fault.found()).isEqualTo(Long.toString(value));
              assertThat(fault.expected()).isNotEmpty();
            });
  }

  @ParameterizedTest(name = "{0} = {1}")
  @CsvSource({
    "llama.attention.layer_norm_rms_epsilon, 0",
    "llama.attention.layer_norm_rms_epsilon, NaN",
    "llama.attention.layer_norm_rms_epsilon, 2",
    "llama.rope.freq_base, -10000",
    "llama.rope.freq_base, Infinity",
    "llama.rope.scaling.factor, -1",
  })
  void aRealOutOfRangeNamesKeyAndLimit(String key, float value) {
    assertThatThrownBy(() -> read(model().real(key, value)))
        .isInstanceOfSatisfying(ModelFormatException.class, fault -> assertThat(fault.field()).isEqualTo(key));
  }

  @ParameterizedTest(name = "without {0}")
  @CsvSource({
    "general.architecture",
    "llama.block_count",
    "llama.embedding_length",
    "llama.feed_forward_length",
    "llama.attention.head_count",
    "llama.attention.layer_norm_rms_epsilon",
    "llama.context_length",
    "token_embd.weight",
  })
  void aMissingValueIsNamed(String name) {
    assertThatThrownBy(() -> read(model().without(name)))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining(name);
  }

  @Test
  void aValueOfAnotherTypeIsNamed() {
    assertThatThrownBy(() -> read(model().text("llama.block_count", "two")))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining("llama.block_count");
  }
}
