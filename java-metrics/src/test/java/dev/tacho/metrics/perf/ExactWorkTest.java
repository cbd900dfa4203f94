package dev.tacho.metrics.perf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Exact work against products worked out by hand and against a count of pairs one by one. */
class ExactWorkTest {
  /** 2 layers, hidden 8, 2 heads of 4, 1 KV head, inner 16, vocabulary 10; 4, 2 and 1 bytes. */
  private static final ModelShape MODEL = ModelShape.dense(2, 8, 2, 1, 4, 16, 10, 4, 2, 1);

  private static Parts count(ModelShape model, int tokens, long computed, int rows) {
    ExactWork work = new ExactWork(model);
    work.add(tokens, computed, rows);
    Parts parts = new Parts();
    work.count(parts);
    return parts;
  }

  @Test
  void aPrefillCountsTheCausalTriangleAndOneRowOfLogits() {
    Parts parts = count(MODEL, 3, 0, 1);
    assertThat(parts.flops).containsEntry("attn.attention", 2 * 4L * (1 + 2 + 3) * 2 * 4)
        .containsEntry("attn.q_proj", 2 * 2L * 3 * 8 * 8).containsEntry("attn.kv_proj", 2 * 2 * 2L * 3 * 4 * 8)
        .containsEntry("ffn.up_gate", 2 * 2 * 2L * 3 * 16 * 8).containsEntry("unembed", 2L * 10 * 8);
    assertThat(parts.read).containsEntry("attn.attention", 2 * (2L * 3 * 4 + 4 * 3 * 2 * 4))
        .containsEntry("unembed", 2L * 10 * 8 + 4 * 8).containsEntry("attn.q_proj", 2 * (2L * 8 * 8 + 4 * 3 * 8))
        .containsEntry("embedding", 2L * 3 * 8);
    assertThat(parts.written).containsEntry("attn.kv_write", 2 * 2L * 3 * 4).containsEntry("unembed", 4L * 10);
  }

  @Test
  void aChunkThatSamplesNothingHasNoLogits() {
    assertThat(count(MODEL, 3, 0, 0).flops).doesNotContainKey("unembed");
  }

  @Test
  void aWindowLimitsWhatAQuerySees() {
    ModelShape windowed = MODEL.withSlidingWindow(40, 1);
    long full = 0;
    long limited = 0;
    for (int i = 0; i < 70; i++) {
      full += 30 + i + 1;
      limited += Math.min(30 + i + 1, 40);
    }
    assertThat(count(windowed, 70, 30, 1).flops.get("attn.attention")).isEqualTo(4 * (full + limited) * 2 * 4);
    // Items of 32, 32 and 6 queries end at 62, 94 and 100; the first of each sees from 0, 23 and 55 on.
    long keys = 62 + 94 + 100 + 62 + (94 - 23) + (100 - 55);
    assertThat(count(windowed, 70, 30, 1).read.get("attn.attention"))
        .isEqualTo(keys * 2 * 4 + 2 * 4L * 70 * 2 * 4);
  }

  @Test
  void whatIsNotKnownIsRefused() {
    assertThatThrownBy(() -> new ExactWork(MODEL.withParallelism(2, 1, 1))).isInstanceOf(
        IllegalArgumentException.class);
    assertThatThrownBy(() -> new ExactWork(MODEL.withExperts(new ExpertShape(4, 2, 8, 0, 1), false)))
        .hasMessageContaining("experts");
  }

  @Test
  void aConfigurationThatLacksASizeNamesIt() {
    assertThatThrownBy(() -> new ModelShapeConfig(Map.of())).hasMessageContaining("num_hidden_layers");
    ModelShapeConfig config = new ModelShapeConfig(Map.of("num_hidden_layers", 2, "num_attention_heads", 2,
        "hidden_size", 8, "vocab_size", 10, "num_kv_heads", 1));
    assertThat(config.shape("bfloat16", "fp8_e5m2", "awq", false, false))
        .isEqualTo(ModelShape.dense(2, 8, 2, 1, 4, 32, 10, 2, 0.5, 1));
    assertThat(config.shape("float32", "auto", "unheard-of", false, false).weightBytes()).isZero();
    assertThatThrownBy(() -> config.shape("float8", "auto", null, false, false)).hasMessageContaining("float8");
    assertThatThrownBy(() -> config.shape("float32", "int3", null, false, false)).hasMessageContaining("int3");
  }

  /** Keeps each part. */
  private static final class Parts implements WorkSink {
    final Map<String, Long> flops = new TreeMap<>();
    final Map<String, Long> read = new TreeMap<>();
    final Map<String, Long> written = new TreeMap<>();

    @Override
    public void flops(String part, long operations) {
      flops.merge(part, operations, Long::sum);
    }

    @Override
    public void read(String part, long bytes) {
      read.merge(part, bytes, Long::sum);
    }

    @Override
    public void write(String part, long bytes) {
      written.merge(part, bytes, Long::sum);
    }
  }
}
