package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.kv.PrefixHashAlgorithm;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Options: defaults, syntax, precedence, errors. */
class EngineConfigTest {
  private static EngineConfig.Builder builder() {
    return EngineConfig.builder().model(Path.of("dir/tales.gguf"));
  }

  @Test
  void defaultsAreThoseOfTheTable() {
    EngineConfig config = builder().build();
    assertThat(config.servedModelName()).isEqualTo("tales");
    assertThat(config.maxModelLen()).isEmpty();
    assertThat(config.maxNumSeqs()).isEqualTo(128);
    assertThat(config.maxNumBatchedTokens()).isEqualTo(512);
    assertThat(config.enableChunkedPrefill()).isTrue();
    assertThat(config.enablePrefixCaching()).isTrue();
    assertThat(config.schedulingPolicy()).isEqualTo("fcfs");
    assertThat(config.asyncScheduling()).isTrue();
    assertThat(config.speculativeConfig()).isEmpty();
    assertThat(config.perRequestSpecDecodeMetrics()).isEqualTo("none");
    assertThat(config.computeNansInLogits()).isFalse();
    assertThat(config.maxNumQueuedReqs()).isEmpty();
    assertThat(config.maxNumQueuedTokens()).isEmpty();
    assertThat(config.kernels()).isEqualTo("auto");
    assertThat(config.kvCacheDtype()).isEqualTo("auto");
    assertThat(config.kvCacheMemory()).isEmpty();
    assertThat(config.enableMfuMetrics()).isTrue();
    assertThat(config.disableLogStats()).isFalse();
    assertThat(config.logStatsInterval()).isEqualTo(Duration.ofSeconds(10));
    assertThat(config.blockSize()).isEqualTo(16);
  }

  @Test
  void everyDefaultIsAValueOfItsOption() {
    for (EngineOption option : EngineOption.values()) {
      if (!option.defaultText().isEmpty()) {
        assertThat(option.parse(option.defaultText())).isInstanceOf(option.type().javaType());
      }
      assertThat(option.help()).isNotBlank();
      assertThat(option.optionName()).matches("[a-z][a-z-]*");
      assertThat(EngineOption.of(option.optionName())).isEqualTo(option);
      assertThat(EngineOption.of(option.key())).isEqualTo(option);
    }
    assertThat(Arrays.stream(EngineOption.values()).map(EngineOption::optionName)).doesNotHaveDuplicates();
  }

  @Test
  void textAndTypedSettersMeanTheSame() {
    EngineConfig typed =
        builder()
            .servedModelName("x")
            .maxModelLen(32_000)
            .maxNumSeqs(8)
            .maxNumBatchedTokens(512)
            .longPrefillTokenThreshold(64)
            .enableChunkedPrefill(true)
            .enablePrefixCaching(false)
            .schedulingPolicy("priority")
            .maxNumQueuedReqs(100)
            .maxNumQueuedTokens(32_768)
            .kernels("scalar")
            .threads(2)
            .kvCacheMemory(MemorySize.ofGibibytes(4))
            .numGpuBlocksOverride(99)
            .kvCacheDtype("bfloat16")
            .seed(-7)
            .disableLogStats(true)
            .enableMfuMetrics(false)
            .logStatsInterval(Duration.ofMillis(1500))
            .build();
    EngineConfig text =
        builder()
            .set("served-model-name", "x")
            .set("max-model-len", "32k")
            .set("max_num_seqs", "8")
            .set("max-num-batched-tokens", "512")
            .set("long-prefill-token-threshold", "64")
            .set("enable-chunked-prefill", "true")
            .set("enable-prefix-caching", "false")
            .set("scheduling-policy", "priority")
            .set("max-num-queued-reqs", "100")
            .set("max-num-queued-tokens", "32K")
            .set("kernels", "scalar")
            .set("threads", "2")
            .set("kv-cache-memory", "4GiB")
            .set("num-gpu-blocks-override", "99")
            .set("kv-cache-dtype", "bfloat16")
            .set("seed", "-7")
            .set("disable-log-stats", "true")
            .set("enable-mfu-metrics", "false")
            .set("log-stats-interval", "1500ms")
            .build();
    assertThat(text).isEqualTo(typed).hasSameHashCodeAs(typed);
    assertThat(typed.toBuilder().build()).isEqualTo(typed);
  }

  @ParameterizedTest
  @CsvSource({
    "max-num-sequences, max-num-seqs",
    "max_model_length, max-model-len",
    "kernel, kernels",
    "kv-cache-memory-bytes, kv-cache-memory"
  })
  void unknownOptionNamesTheNearest(String given, String nearest) {
    assertThatThrownBy(() -> builder().set(given, "1"))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining(given)
        .hasMessageContaining("--" + nearest);
  }

  @ParameterizedTest
  @CsvSource({
    "threads, many",
    "threads, -1",
    "threads, 2000",
    "max-num-seqs, 0",
    "max-num-seqs, 4g",
    "max-num-batched-tokens, 0",
    "max-model-len, 1",
    "kernels, fast",
    "scheduling-policy, lifo",
    "enable-prefix-caching, perhaps",
    "max-num-queued-reqs, -1",
    "kv-cache-dtype, fp8",
    "kv-cache-memory, 4XB",
    "kv-cache-memory, 1.5K",
    "enable-mfu-metrics, perhaps",
    "log-stats-interval, soon",
    "log-stats-interval, 0s",
    "log-stats-interval, 99999999999h",
    "block-size, 32",
    "model, ''",
    "repack-cache, ' '",
    "metrics-directory, ''",
    "served-model-name, ''",
    "seed, x"
  })
  void badValueNamesItsOption(String option, String value) {
    assertThatThrownBy(() -> builder().set(option, value).build())
        .isInstanceOfSatisfying(ConfigurationException.class, e -> assertThat(e.option()).isEqualTo(option));
  }

  @Test
  void theDefaultOfSequencesGivesWayToASmallTokenBudgetButAGivenOneDoesNot() {
    assertThat(builder().maxNumBatchedTokens(32).build().maxNumSeqs()).isEqualTo(32);
    assertThat(builder().maxNumBatchedTokens(32).build().toBuilder().maxNumBatchedTokens(512).build().maxNumSeqs())
        .isEqualTo(128);
    assertThatThrownBy(() -> builder().maxNumBatchedTokens(32).maxNumSeqs(33).build())
        .isInstanceOfSatisfying(
            ConfigurationException.class, e -> assertThat(e.option()).isEqualTo("max-num-batched-tokens"));
  }

  @Test
  void modelIsRequired() {
    assertThatThrownBy(() -> EngineConfig.builder().build())
        .isInstanceOfSatisfying(ConfigurationException.class, e -> assertThat(e.option()).isEqualTo("model"));
  }

  @Test
  void environmentGivesWayToWhatWasSet() {
    EngineConfig config =
        builder()
            .threads(3)
            .environment(
                Map.of("TACHO_THREADS", "5", "TACHO_MAX_NUM_SEQS", "7", "TACHO_MAX_ISA", "avx2", "HOME", "/"),
                Set.of("TACHO_MAX_ISA"))
            .build();
    assertThat(config.threads()).isEqualTo(3);
    assertThat(config.maxNumSeqs()).isEqualTo(7);
  }

  @Test
  void aVariableWithoutAValueOfItsOptionIsNamed() {
    assertThatThrownBy(() -> builder().environment(Map.of("TACHO_MAX_NUM_SEQS", "abc"), Set.of()))
        .isInstanceOfSatisfying(ConfigurationException.class, e -> assertThat(e.option()).isEqualTo("max-num-seqs"))
        .hasMessageStartingWith("TACHO_MAX_NUM_SEQS (--max-num-seqs): expected ")
        .hasMessageContaining("'abc'");
    EngineConfig.Builder tooFew = builder().environment(Map.of("TACHO_MAX_NUM_SEQS", "0"), Set.of());
    assertThatThrownBy(tooFew::build).hasMessage("TACHO_MAX_NUM_SEQS (--max-num-seqs): must be at least 1, is 0");
    tooFew.maxNumSeqs(-1);
    assertThatThrownBy(tooFew::build).as("set by somebody else since").hasMessageStartingWith("--max-num-seqs: ");
  }

  @Test
  void unknownEnvironmentVariableNamesTheNearest() {
    assertThatThrownBy(() -> builder().environment(Map.of("TACHO_THREAD", "5"), Set.of()))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("TACHO_THREAD;")
        .hasMessageStartingWith("--thread:")
        .hasMessageContaining("TACHO_THREADS");
  }

  @Test
  void variablesOfAKubernetesServiceCalledTachoAreLeftAlone() {
    Map<String, String> links =
        Map.of(
            "TACHO_SERVICE_HOST", "10.0.0.1",
            "TACHO_SERVICE_PORT", "8000",
            "TACHO_SERVICE_PORT_HTTP", "8000",
            "TACHO_PORT", "tcp://10.0.0.1:8000",
            "TACHO_PORT_8000_TCP_ADDR", "10.0.0.1",
            "TACHO_CANARY_SERVICE_HOST", "10.0.0.2");
    assertThat(builder().environment(links, Set.of()).build()).isEqualTo(builder().build());
  }

  private static EngineConfig.Builder speculation(String json) {
    return builder().set("speculative-config", json);
  }

  @Test
  void speculationIsReadFromJsonAndShownAsIt() {
    String both =
        "{\"method\":\"ngram\",\"num_speculative_tokens\":4,"
            + "\"prompt_lookup_min\":2,\"prompt_lookup_max\":7}";
    EngineConfig config = speculation(both).build();
    assertThat(config.speculativeConfig()).contains(new SpeculativeConfig(4, 2, 7));
    assertThat(config.asyncScheduling()).as("drafts are stepped synchronously").isFalse();
    assertThat(speculation(config.text(EngineOption.SPECULATIVE_CONFIG)).build()).isEqualTo(config);
    String spaced = " { \"num_speculative_tokens\" : 3 ,\n \"method\" : \"ngram\" } ";
    assertThat(speculation(spaced).build().speculativeConfig())
        .contains(new SpeculativeConfig(3, 5, 5));
    assertThat(speculation("{\"method\":\"ngram\",\"num_speculative_tokens\":3,\"prompt_lookup_max\":2}").build()
            .speculativeConfig())
        .contains(new SpeculativeConfig(3, 2, 2));
    assertThat(speculation("{\"method\":\"ngram\",\"num_speculative_tokens\":3,\"prompt_lookup_min\":6}").build()
            .speculativeConfig())
        .contains(new SpeculativeConfig(3, 6, 6));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '\'',
      value = {
        "ngram | expected a JSON object",
        "{ } | method must be \"ngram\", is missing",
        "{method: 'ngram'} | names with words or whole numbers",
        "{\"method\":\"ngram\",} | names with words or whole numbers",
        "{\"method\":\"ngram\"} | num_speculative_tokens is missing",
        "{\"method\":\"eagle\",\"num_speculative_tokens\":3} | method must be \"ngram\", is \"eagle\"",
        "{\"num_speculative_tokens\":3} | method must be \"ngram\", is missing",
        "{\"method\":\"ngram\",\"num_speculative_tokens\":2147483648} | at most 9 digits, is 2147483648",
        "{\"method\":\"ngram\",\"num_speculative_tokens\":0} | must be from 1 to 255, is 0",
        "{\"method\":\"ngram\",\"num_speculative_tokens\":256} | must be from 1 to 255, is 256",
        "{\"method\":\"ngram\",\"num_speculative_tokens\":\"x\"} | must be a whole number, is \"x\"",
        "{\"method\":\"ngram\",\"num_speculative_tokens\":3,\"model\":\"m\"} | unknown: model",
        "{\"method\":\"ngram\",\"num_speculative_tokens\":3,\"num_speculative_tokens\":4} | is there twice",
        "{\"method\":\"ngram\",\"num_speculative_tokens\":3,\"prompt_lookup_min\":0} | at least 1, is 0",
        "{\"method\":\"ngram\",\"num_speculative_tokens\":3,\"prompt_lookup_min\":9,\"prompt_lookup_max\":8} | at most",
      })
  void speculationThatCannotBeIsRefusedWithTheReason(String json, String problem) {
    assertThatThrownBy(() -> speculation(json))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageStartingWith("--speculative-config:")
        .hasMessageContaining(problem);
  }

  @Test
  void aSequenceAndItsDraftsMustFitIntoAStep() {
    EngineConfig.Builder builder = builder().speculativeConfig(new SpeculativeConfig(16, 1, 1)).maxNumSeqs(4);
    assertThatThrownBy(() -> builder.maxNumBatchedTokens(16).build())
        .hasMessageStartingWith("--speculative-config:")
        .hasMessageContaining("max-num-batched-tokens, 16");
    assertThat(builder.maxNumBatchedTokens(17).build().numSpeculativeTokens()).isEqualTo(16);
  }

  @Test
  void valuesShowAsText() {
    EngineConfig config = builder().kvCacheMemory(MemorySize.parse("512MiB")).build();
    assertThat(config.text(EngineOption.KV_CACHE_MEMORY)).isEqualTo("512MiB");
    assertThat(config.text(EngineOption.MAX_NUM_SEQS)).isEqualTo("128");
    assertThat(config.text(EngineOption.MAX_MODEL_LEN)).isEmpty();
    assertThat(EngineOption.MAX_MODEL_LEN.environmentName()).isEqualTo("TACHO_MAX_MODEL_LEN");
  }

  @Test
  void timeInTheQueueBeforeTheLogSaysWhy() {
    EngineConfig.Builder builder = EngineConfig.builder().model(Path.of("m.gguf"));
    assertThat(builder.build().logWaitingAfter()).isEqualTo(Duration.ofSeconds(30));
    assertThat(builder.set("log-waiting-after", "0").build().logWaitingAfter()).isZero();
    assertThatThrownBy(() -> builder.set("log-waiting-after", "9000h").build())
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("log-waiting-after")
        .hasMessageContaining("at most 8784h");
  }

  @Test
  void hashOfThePrefixCacheReachesTheScheduler() {
    EngineConfig.Builder builder = EngineConfig.builder().model(Path.of("m.gguf"));
    assertThat(builder.build().schedulerConfig(100).prefixHashAlgorithm()).isEqualTo(PrefixHashAlgorithm.SHA256);
    builder.prefixCachingHashAlgo("xxhash");
    assertThat(builder.build().schedulerConfig(100).prefixHashAlgorithm()).isEqualTo(PrefixHashAlgorithm.XXHASH);
    assertThatThrownBy(() -> builder.prefixCachingHashAlgo("md5")).hasMessageContaining("sha256, xxhash");
  }
}
