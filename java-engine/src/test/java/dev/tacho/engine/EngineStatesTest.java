package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** An engine on its way out does not come back, whoever says something else at the same time. */
@Timeout(60)
class EngineStatesTest {
  private final List<EngineState> published = Collections.synchronizedList(new ArrayList<>());
  private final EngineStates states = new EngineStates("test", published::add);

  @Test
  void closingIsNotUndoneBySleepWakingOrAFailure() {
    states.enter(EngineState.RUNNING);
    states.enter(EngineState.SLEEPING);
    states.enter(EngineState.DEGRADED);
    states.awake();
    assertThat(states.state()).as("only a sleeping engine is woken").isEqualTo(EngineState.DEGRADED);
    states.enter(EngineState.DRAINING);
    states.enter(EngineState.SLEEPING);
    states.awake();
    states.enter(EngineState.RUNNING, null);
    assertThat(states.state()).isEqualTo(EngineState.DRAINING);
    assertThatThrownBy(states::checkOpen).isInstanceOf(EngineClosedException.class);
    states.enter(EngineState.DEAD, new IllegalStateException("injected"));
    states.enter(EngineState.DRAINING);
    assertThat(states.state()).isEqualTo(EngineState.DEAD);
    assertThatThrownBy(states::checkOpen).isInstanceOf(EngineDeadException.class);
    states.enter(EngineState.CLOSED);
    states.enter(EngineState.DEAD, null);
    assertThat(states.state()).isEqualTo(EngineState.CLOSED);
    assertThat(published)
        .containsExactly(
            EngineState.RUNNING,
            EngineState.SLEEPING,
            EngineState.DEGRADED,
            EngineState.DRAINING,
            EngineState.DEAD,
            EngineState.CLOSED);
  }

  @Test
  void closeBesideSleepAndWakeEndsInDraining() throws Exception {
    CyclicBarrier together = new CyclicBarrier(2);
    for (int round = 0; round < 2000; round++) {
      EngineStates shared = new EngineStates("test", published::add);
      shared.enter(EngineState.RUNNING);
      Thread sleeper =
          Thread.ofPlatform()
              .start(
                  () -> {
                    await(together);
                    shared.enter(EngineState.SLEEPING);
                    shared.awake();
                  });
      await(together);
      shared.enter(EngineState.DRAINING);
      sleeper.join();
      assertThat(shared.state()).as("round %d", round).isEqualTo(EngineState.DRAINING);
      assertThat(published.getLast()).as("published last in round %d", round).isEqualTo(EngineState.DRAINING);
    }
  }

  private static void await(CyclicBarrier barrier) {
    try {
      barrier.await();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
