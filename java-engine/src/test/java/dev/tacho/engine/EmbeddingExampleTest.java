package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The examples of the embedding guide, as they stand there. */
@Timeout(120)
class EmbeddingExampleTest {
  private static final Path MODEL = BundledModel.path();

  @Test
  void oneLineAndSensibleDefaults() {
    List<String> printed = new ArrayList<>();
    try (Engine engine = Engine.open(MODEL)) {
      Completion answer = engine.complete("Once upon a time", SamplingParams.greedy().withMaxTokens(64));
      printed.add(answer.text() + " " + answer.timings().timeToFirstToken());
      printed.add(engine.metrics().exposition());
    }
    assertThat(printed.get(0)).matches("(?s).*[a-z]{3}.* PT[0-9]+\\.[0-9]+S");
    assertThat(printed.get(1)).contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"tacho-tales\"} 64.0");
  }

  @Test
  void streamingFromAVirtualThreadAndWithCallbacks() throws Exception {
    try (Engine engine = Engine.open(BundledModel.config().build());
        ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
      GenerationHandle handle =
          engine.submit(
              GenerationRequest.builder()
                  .prompt("One day, a shy girl")
                  .sampling(SamplingParams.builder().temperature(0.7).topP(0.9).seed(42).maxTokens(32).build())
                  .requestId("order-4711")
                  .build());
      StringBuilder streamed = new StringBuilder();
      executor
          .submit(
              () -> {
                for (TokenDelta delta : handle.deltas()) {
                  streamed.append(delta.text());
                }
              })
          .get();
      assertThat(streamed).hasToString(handle.completion().join().text());

      StringBuilder heard = new StringBuilder();
      GenerationHandle other =
          engine.submit(GenerationRequest.of("The sun was", SamplingParams.greedy().withMaxTokens(32)));
      other.onDelta(executor, delta -> heard.append(delta.text()));
      Completion whole = other.completion().join();
      other.cancel();
      assertThat(whole.usage().generatedTokens()).isPositive();
    }
  }
}
