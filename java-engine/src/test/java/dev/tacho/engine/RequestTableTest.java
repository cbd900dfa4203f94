package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.engine.scheduler.Sequence;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Slots and generations. */
class RequestTableTest {
  private static RequestRecord newRecord() {
    Generation generation =
        new Generation(
            "r", GenerationRequest.of("a", SamplingParams.greedy()), 1, Mailbox.Limits.DEFAULT, request -> {});
    ByteCodec codec = new ByteCodec();
    int[] prompt = {1};
    SequenceOutput output = new SequenceOutput(codec.stream(prompt), new StopStringFilter(java.util.List.of()), 0);
    RequestRecord record =
        new RequestRecord(
            generation, 0, "r", new SamplerState(SamplingParams.greedy(), Set.of(), 1), 5, output);
    generation.prepare(prompt, new RequestRecord[] {record});
    return record;
  }

  @Test
  void aSweepLetsGoOfReleasedRecordsAndOfNoOthers() {
    RequestTable table = new RequestTable();
    Sequence ended = table.enter(newRecord());
    Sequence running = table.enter(newRecord());
    table.release(ended);
    table.sweep();
    assertThatThrownBy(() -> table.record(ended)).isInstanceOf(IllegalStateException.class);
    assertThat(table.record(running).isLive()).isTrue();
    Sequence next = table.enter(newRecord());
    table.release(next);
    Sequence inItsSlot = table.enter(newRecord());
    table.sweep();
    assertThat(table.record(inItsSlot).isLive()).isTrue();
  }

  @Test
  void aReleasedRecordIsFoundUntilItsSlotIsTakenAgain() {
    RequestTable table = new RequestTable();
    RequestRecord first = newRecord();
    Sequence sequence = table.enter(first);
    table.release(sequence);
    assertThat(table.record(sequence)).isSameAs(first);
    assertThat(table.live()).isEmpty();
    Sequence later = sequence;
    while (later == sequence || later.slot() != sequence.slot()) {
      later = table.enter(newRecord());
      table.release(later);
    }
    assertThat(later.generation()).isEqualTo(sequence.generation() + 1);
    assertThatThrownBy(() -> table.record(sequence)).isInstanceOf(IllegalStateException.class);
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {41, 42})
  void liveSequencesNeverShareASlotAndGenerationsGrow(long seed) {
    Random random = new Random(seed);
    RequestTable table = new RequestTable();
    Deque<Sequence> live = new ArrayDeque<>();
    Set<Integer> slots = new HashSet<>();
    Map<Integer, Integer> generations = new HashMap<>();
    for (int i = 0; i < 20_000; i++) {
      if (live.isEmpty() || random.nextInt(100) < (i < 10_000 ? 60 : 45)) {
        RequestRecord record = newRecord();
        Sequence sequence = table.enter(record);
        live.add(sequence);
        assertThat(slots.add(sequence.slot())).isTrue();
        assertThat(sequence.generation()).isGreaterThan(generations.getOrDefault(sequence.slot(), 0));
        generations.put(sequence.slot(), sequence.generation());
        assertThat(table.record(sequence)).isSameAs(record);
      } else {
        Sequence sequence = random.nextBoolean() ? live.removeFirst() : live.removeLast();
        slots.remove(sequence.slot());
        table.release(sequence);
      }
    }
    assertThat(table.live()).hasSameSizeAs(live);
  }
}
