package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Closing while kernels of the native provider compute: no step may read memory that has been given back. A fault here
 * is not a failed test but a dead JVM.
 */
class BundledModelCloseTest {
  private static final int ROUNDS = 500;
  private static final SamplingParams LONG = SamplingParams.greedy().withMaxTokens(200).withIgnoreEos(true);

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {21, 22, 23, 24})
  @Timeout(300)
  void closesAt2000RandomPointsOfAStep(long seed) {
    Random random = new Random(seed);
    EngineConfig config =
        BundledModel.config().kernels("native").threads(2).maxNumSeqs(4).maxNumBatchedTokens(64).build();
    int[] prompt = new int[40];
    for (int round = 0; round < ROUNDS; round++) {
      Engine engine = Engine.open(config);
      for (int i = 0; i < prompt.length; i++) {
        prompt[i] = random.nextInt(1, engine.info().vocabSize());
      }
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = random.nextInt(1, 7); i > 0; i--) {
        handles.add(engine.submit(GenerationRequest.builder().prompt(prompt).sampling(LONG).build()));
      }
      LockSupport.parkNanos(random.nextInt(3_000_000));
      engine.close();
      for (GenerationHandle handle : handles) {
        assertCutShortOrComplete(handle);
      }
    }
  }

  /** On a busy machine the closing thread may come late, and find a request that has all its tokens. */
  private static void assertCutShortOrComplete(GenerationHandle handle) {
    try {
      assertThat(handle.completion().join().tokenIds()).hasSize(LONG.maxTokens());
    } catch (CompletionException e) {
      assertThat(e).hasCauseInstanceOf(EngineClosedException.class);
    }
  }
}
