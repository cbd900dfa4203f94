package dev.tacho.engine.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PriorityHeapTest {
  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void staysInOrderUnderRemovals(long seed) {
    Random random = new Random(seed);
    PriorityHeap heap = new PriorityHeap();
    List<Sequence> model = new ArrayList<>();
    for (int i = 0; i < 1500; i++) {
      if (model.isEmpty() || random.nextInt(5) < 3) {
        Sequence s =
            SchedulerWorld.sequence("r" + i, 3, 4)
                .priority(random.nextInt(4))
                // Around the point where nanoTime wraps.
                .arrivalNanos(Long.MAX_VALUE - 5 + random.nextInt(10))
                .build();
        heap.add(s);
        model.add(s);
      } else {
        Sequence s = random.nextBoolean() ? heap.peek() : model.get(random.nextInt(model.size()));
        assertThat(s).isNotNull();
        heap.remove(s);
        model.remove(s);
      }
      model.sort(PriorityHeap.ORDER);
      assertThat(heap.size()).isEqualTo(model.size());
      assertThat(heap.peek()).isSameAs(model.isEmpty() ? null : model.getFirst());
    }
    assertThat(heap.ordered()).isEqualTo(model);
  }
}
