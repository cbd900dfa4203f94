package dev.tacho.engine.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class SchedulerConfigTest {
  private static void refused(SchedulerConfig.Builder builder, String message) {
    assertThatThrownBy(builder::build).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  private static SchedulerConfig.Builder config() {
    return SchedulerConfig.builder();
  }

  @Test
  void defaultsAreTheReferences() {
    SchedulerConfig c = config().build();
    assertThat(c.maxNumBatchedTokens()).isEqualTo(2048);
    assertThat(c.maxNumScheduledTokens()).isEqualTo(2048);
    assertThat(c.maxNumSeqs()).isEqualTo(128);
    assertThat(c.maxNumActiveSeqs()).isEqualTo(128);
    assertThat(c.reserveFullSequence()).isTrue();
    assertThat(c.watermark()).isZero();
  }

  @Test
  void limitsAreCheckedWithBothNumbers() {
    refused(
        config().maxNumBatchedTokens(16).maxNumSeqs(17),
        "max_num_seqs must be at most max_num_batched_tokens 16, is 17");
    refused(
        config().maxNumBatchedTokens(1024).enableChunkedPrefill(false).maxModelLen(1025),
        "without chunked prefill max_model_len must be at most max_num_batched_tokens 1024, is 1025");
    refused(
        config().maxNumSeqs(4).maxNumActiveSeqs(5), "max_num_active_seqs must be at most max_num_seqs 4, is 5");
    refused(
        config().maxModelLen(100).longPrefillTokenThreshold(101),
        "long_prefill_token_threshold must be at most max_model_len 100, is 101");
    refused(config().maxNumSeqs(0), "max_num_seqs must be at least 1, is 0");
    refused(config().watermark(1.0), "watermark must be in [0, 1), is 1.0");
    refused(config().watermark(Double.NaN), "watermark must be in [0, 1), is NaN");
  }
}
