package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the engine thread allocates while eight sequences decode: nothing. */
@Timeout(60)
class EngineAllocationTest {
  private static final int SEQUENCES = 8;
  private static final int STEPS = 3900;
  private static final int CLEAN_STEPS = 300;

  @ParameterizedTest(name = "async {0}")
  @ValueSource(booleans = {false, true})
  void aStepOfRunningSequencesAllocatesNothing(boolean async) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long[] allocated = new long[STEPS + 1];
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .during(
                step -> {
                  if (step <= STEPS) {
                    allocated[step] = threads.getCurrentThreadAllocatedBytes();
                  }
                  // The output thread keeps up, as it does behind a real model.
                  LockSupport.parkNanos(200_000);
                });
    List<GenerationHandle> handles = new ArrayList<>();
    try (Engine engine = ScriptedEngine.over(runner).with(options -> options.asyncScheduling(async)).open()) {
      for (int i = 0; i < SEQUENCES; i++) {
        handles.add(engine.submit(GenerationRequest.of("a", SamplingParams.greedy().withMaxTokens(STEPS + 50))));
      }
      handles.forEach(handle -> assertThat(handle.completion().join().usage().generatedTokens()).isEqualTo(STEPS + 50));
    }
    // Token arrays and block tables double now and then, a new batch is made when the output thread lags further behind
    // than ever before, and the compilers take their time: a step as such takes nothing.
    int longest = 0;
    int clean = 0;
    for (int step = 1; step < STEPS; step++) {
      clean = allocated[step + 1] == allocated[step] ? clean + 1 : 0;
      longest = Math.max(longest, clean);
    }
    assertThat(longest).as("steps in a row, of %s, that allocated nothing", STEPS).isGreaterThanOrEqualTo(CLEAN_STEPS);
  }
}
