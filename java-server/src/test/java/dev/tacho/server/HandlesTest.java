package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.Completion;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;

import dev.tacho.engine.GenerationHandle;
import dev.tacho.engine.GenerationRequest;
import dev.tacho.engine.SamplingParams;
import dev.tacho.metrics.event.FinishReason;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HandlesTest {
  private static final int TOKENS = 400;

  private static GenerationHandle submit(Engine engine) {
    SamplingParams sampling = SamplingParams.greedy().withMaxTokens(TOKENS).withIgnoreEos(true);
    return engine.submit(GenerationRequest.builder().prompt("Once upon a time").sampling(sampling).build());
  }

  private static void assertAborted(GenerationHandle handle) throws Exception {
    Completion completion = handle.completion().get(30, TimeUnit.SECONDS);
    assertThat(completion.finishReason()).isEqualTo(FinishReason.ABORT);
  }

  @Test
  void aRequestThatComesAfterItsClientHasGoneIsCancelledToo() throws Exception {
    try (Engine engine = Engine.open(EngineConfig.builder().model(BundledModel.FILE).maxModelLen(512).build())) {
      Handles handles = new Handles();
      GenerationHandle early = submit(engine);
      assertThat(handles.add(early)).isTrue();
      handles.cancel();
      GenerationHandle late = submit(engine);
      assertThat(handles.add(late)).as("there is still a client").isFalse();
      assertAborted(early);
      assertAborted(late);
      assertThat(handles.all()).isEqualTo(List.of(early, late));
    }
  }
}
