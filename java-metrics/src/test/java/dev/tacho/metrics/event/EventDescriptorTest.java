package dev.tacho.metrics.event;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.ring.EventRing;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The bytes of every record, as drawn in {@link EventDescriptor}: read without the reader. */
class EventDescriptorTest {
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  @Test
  void idsAreStable() {
    String ids = "";
    Set<Integer> seen = new HashSet<>();
    for (EventType type : EventType.values()) {
      ids += type.id() + "=" + type + " ";
      assertThat(seen.add(type.id())).isTrue();
      assertThat(EventType.of(type.id())).isEqualTo(type);
      assertThat(type.bytes() % 8).isZero();
    }
    assertThat(ids).isEqualTo("1=NAME 2=QUEUED 3=SCHEDULED 4=PREEMPTED 5=STEP 6=TOKENS 7=PREFILL_STATS 8=CORRUPTED "
        + "9=FINISHED 10=ENDED 11=SNAPSHOT 12=PICK_UP 13=STOPPED 14=DRAFT 15=EVICTED 16=DETAILS 17=REQUEST_ID "
        + "18=GRAPH 19=STEP_OF_ONE ");
  }

  @Test
  void tokensIsOneWord() {
    check(w -> w.tokens(0xABCDEF, 0x12345678, 0x4321), 8, (m, at) -> {
      assertThat(m.get(ValueLayout.JAVA_BYTE, at)).isEqualTo((byte) 6);
      assertThat(INT.byteSize()).isEqualTo(4);
      assertThat(m.get(LONG, at)).isEqualTo(0x5678_ABCDEF_4321_06L);
    });
  }

  @Test
  void queued() {
    check(w -> w.queued(5, 1, 100, 90, 33, 7, 2, 4, 9), 48, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0001_000005_0000_02L);
      assertThat(m.get(LONG, at + 8)).isEqualTo(100);
      assertThat(m.get(LONG, at + 16)).isEqualTo(90);
      assertThat(ints(m, at + 24, 6)).containsExactly(33, 7, 2, 4, 9, 0);
    });
  }

  @Test
  void stamps() {
    check(w -> w.scheduled(3, 2, 77), 16, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0002_000003_0000_03L);
      assertThat(m.get(LONG, at + 8)).isEqualTo(77);
    });
    check(w -> w.preempted(3, 2, 78), 16, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0002_000003_0000_04L);
      assertThat(m.get(LONG, at + 8)).isEqualTo(78);
    });
  }

  @Test
  void stepOfDecodes() {
    StepShape shape = new StepShape();
    shape.add(false, 1, 20);
    shape.add(false, 1, 30);
    checkStep(shape, 48, 0, 2, 52);
  }

  @Test
  void stepOfDecodesAndPrefills() {
    StepShape shape = new StepShape();
    shape.add(true, 5, 3);
    shape.add(false, 1, 20);
    checkStep(shape, 80, 1, 1, 21, 1, 5, 8, 5 * 8 + 21);
  }

  @Test
  void stepWithAWindowThatCuts() {
    StepShape shape = new StepShape(10);
    shape.add(false, 1, 20);
    checkStep(shape, 72, 2, 1, 21, 0, 10, 10);
    shape.add(true, 5, 3);
    checkStep(shape, 104, 3, 1, 21, 1, 5, 8, 5 * 8 + 21, 8, 10, 5 * 8 + 10);
  }

  private static final StepShape ONE_DECODE = oneDecode(30);

  private static StepShape oneDecode(long context) {
    StepShape shape = new StepShape(4096);
    shape.add(false, 1, context - 1);
    return shape;
  }

  @Test
  void stepOfOneTokenIsOneRecord() {
    check(w -> {
      w.step(9, 500, 400, 1, ONE_DECODE);
      w.tokens(3, 2, 1);
    }, 32, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0002_000003_0001_13L);
      assertThat(longs(m, at + 8, 2)).containsExactly(9, 500);
      assertThat(ints(m, at + 24, 2)).containsExactly(100, 30);
      EventReader reader = new EventReader().wrap(m, at);
      assertThat(List.of(reader.step(), reader.batchNanos(), reader.scheduleNanos())).containsExactly(9L, 500L, 400L);
      assertThat(List.of(reader.outputs(), reader.slot(), reader.generation(), reader.argument()))
          .containsExactly(1, 3, 2, 1);
      StepShape read = new StepShape(4096);
      read.add(true, 5, 3);
      reader.shape(read);
      assertThat(read).usingRecursiveComparison().isEqualTo(ONE_DECODE);
    });
  }

  /** Whatever does not fit the short record is written as a STEP and what follows it, in order. */
  @ParameterizedTest(name = "{0}")
  @MethodSource("stepsThatAreNotShort")
  void otherStepsStayWhatTheyAre(String what, Consumer<EventWriter> write, List<EventType> expected, long context) {
    EventRing ring = new EventRing();
    EventWriter writer = EventWriter.into(ring);
    write.accept(writer);
    writer.commit();
    List<EventType> types = new ArrayList<>();
    ring.drain((memory, offset) -> {
      EventReader reader = new EventReader().wrap(memory, offset);
      types.add(reader.type());
      if (reader.type() == EventType.STEP) {
        assertThat(List.of(reader.step(), reader.batchNanos())).containsExactly(9L, 500L);
        assertThat(reader.outputs()).isEqualTo(1);
        StepShape read = new StepShape();
        reader.shape(read);
        assertThat(read.decodeContext()).isEqualTo(context);
      }
      return reader.bytes();
    }, ring.tailAcquire());
    assertThat(types).isEqualTo(expected);
  }

  static Stream<Arguments> stepsThatAreNotShort() {
    return Stream.of(
        notShort("two tokens", w -> w.tokens(3, 2, 2), EventType.TOKENS),
        notShort("no token: the step failed", w -> w.finished(3, 2, FinishReason.ERROR), EventType.FINISHED),
        notShort("nothing", w -> {}),
        notShort(
            "logits with a NaN",
            w -> {
              w.corrupted(3, 2);
              w.tokens(3, 2, 1);
            },
            EventType.CORRUPTED,
            EventType.TOKENS),
        notShort(
            "a first token",
            w -> {
              w.prefillStats(3, 2, 1, 0, 0, 0);
              w.tokens(3, 2, 1);
            },
            EventType.PREFILL_STATS,
            EventType.TOKENS),
        Arguments.of(
            "a schedule too long ago",
            (Consumer<EventWriter>) w -> {
              w.step(9, 500, 500 - (1L << 31), 1, ONE_DECODE);
              w.tokens(3, 2, 1);
            },
            List.of(EventType.STEP, EventType.TOKENS),
            30L),
        Arguments.of(
            "a context too long",
            (Consumer<EventWriter>) w -> {
              w.step(9, 500, 400, 1, oneDecodeWithoutWindow(1L << 31));
              w.tokens(3, 2, 1);
            },
            List.of(EventType.STEP, EventType.TOKENS),
            1L << 31));
  }

  private static StepShape oneDecodeWithoutWindow(long context) {
    StepShape shape = new StepShape();
    shape.add(false, 1, context - 1);
    return shape;
  }

  private static Arguments notShort(String what, Consumer<EventWriter> after, EventType... types) {
    List<EventType> expected = new ArrayList<>(List.of(EventType.STEP));
    expected.addAll(List.of(types));
    Consumer<EventWriter> write =
        w -> {
          w.step(9, 500, 400, 1, ONE_DECODE);
          after.accept(w);
        };
    return Arguments.of(what, write, expected, 30L);
  }

  private static void checkStep(StepShape shape, int bytes, int parts, long... sums) {
    check(w -> w.step(9, 500, 400, 2, shape), bytes, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(2L << 24 | parts << 8 | 5);
      assertThat(longs(m, at + 8, 3)).containsExactly(9, 500, 400);
      assertThat(longs(m, at + 32, sums.length)).containsExactly(sums);
      EventReader reader = new EventReader().wrap(m, at);
      assertThat(reader.outputs()).isEqualTo(2);
      StepShape read = new StepShape();
      read.add(true, 1, 1);
      reader.shape(read);
      assertThat(read).usingRecursiveComparison().ignoringFields("window").isEqualTo(shape);
    });
  }

  @Test
  void prefillStats() {
    check(w -> w.prefillStats(1, 0, 40, 16, 8, 4), 24, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0000_000001_0000_07L);
      assertThat(ints(m, at + 8, 4)).containsExactly(40, 16, 8, 4);
    });
  }

  @Test
  void ends() {
    check(w -> w.finished(1, 0, FinishReason.LENGTH), 8,
        (m, at) -> assertThat(m.get(LONG, at)).isEqualTo(0x0000_000001_0001_09L));
    check(w -> w.ended(1, 0, FinishReason.ABORT), 8,
        (m, at) -> assertThat(m.get(LONG, at)).isEqualTo(0x0000_000001_0002_0AL));
    check(w -> w.corrupted(1, 3), 8, (m, at) -> assertThat(m.get(LONG, at)).isEqualTo(0x0003_000001_0000_08L));
    check(w -> w.stopped(1, 3), 8, (m, at) -> assertThat(m.get(LONG, at)).isEqualTo(0x0003_000001_0000_0DL));
  }

  @Test
  void snapshot() {
    check(w -> w.snapshot(1, 2, 3, 4, 5, 6, 7, 8), 48, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x1_0BL);
      assertThat(ints(m, at + 8, 6)).containsExactly(1, 2, 3, 4, 5, 6);
      assertThat(longs(m, at + 32, 2)).containsExactly(7, 8);
    });
    check(w -> w.snapshot(1, 2, 3, 4, 5, 0, 0, 0), 32, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0BL);
      assertThat(ints(m, at + 8, 6)).containsExactly(1, 2, 3, 4, 5, 0);
      EventReader reader = new EventReader().wrap(m, at);
      assertThat(List.of(reader.queriedTokens(), reader.hitTokens())).containsExactly(0L, 0L);
    });
  }

  @Test
  void draft() {
    check(w -> w.draft(1, 3, 5, 2), 8, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0003_000001_0502_0EL);
      EventReader reader = new EventReader().wrap(m, at);
      assertThat(List.of(reader.drafted(), reader.accepted())).containsExactly(5, 2);
    });
  }

  @Test
  void evicted() {
    check(w -> w.evicted(9, 8, 7, 6, -1), 48, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0FL);
      assertThat(longs(m, at + 8, 5)).containsExactly(9, 8, 7, 6, -1);
    });
  }

  @Test
  void details() {
    check(w -> w.details(7, 1, 2, 3, 4, 5), 40, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x10L);
      assertThat(longs(m, at + 8, 1)).containsExactly(7);
      assertThat(ints(m, at + 16, 4)).containsExactly(1, 2, 3, 4);
      assertThat(longs(m, at + 32, 1)).containsExactly(5);
    });
  }

  @Test
  void graph() {
    check(w -> w.graph(5, 8, GraphMode.PIECEWISE), 16, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x01_12L);
      assertThat(ints(m, at + 8, 2)).containsExactly(5, 8);
      assertThat(new EventReader().wrap(m, at).graphMode()).isEqualTo(GraphMode.PIECEWISE);
    });
  }

  @Test
  void pickUp() {
    check(w -> w.pickUp(12, 345), 24, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0CL);
      assertThat(longs(m, at + 8, 2)).containsExactly(12, 345);
    });
  }

  @Test
  void aNameIsPaddedAndToldOnce() {
    check(w -> {
      assertThat(w.name("adapter-ü")).isEqualTo(1);
      assertThat(w.name("adapter-ü")).isEqualTo(1);
    }, 24, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0000_000001_000A_01L);
      assertThat(m.get(LONG, at + 16)).isEqualTo(0xBC_C3L);
      assertThat(new EventReader().wrap(m, at).text()).isEqualTo("adapter-ü");
    });
  }

  @Test
  void aLongNameIsCutBetweenCharacters() {
    String name = "x" + "ü".repeat(2000);
    check(w -> w.name(name), 8 + 1024, (m, at) ->
        assertThat(new EventReader().wrap(m, at).text()).isEqualTo("x" + "ü".repeat(511)));
  }

  @Test
  void aRequestIdIsPaddedAndCutBetweenCharacters() {
    check(w -> w.requestId(3, 2, RequestId.of("req-ü")), 16, (m, at) -> {
      assertThat(m.get(LONG, at)).isEqualTo(0x0002_000003_0006_11L);
      assertThat(m.get(LONG, at + 8)).isEqualTo(0xBC_C3_2D_71_65_72L);
      assertThat(new EventReader().wrap(m, at).requestId()).hasToString("req-ü");
    });
    check(w -> w.requestId(3, 2, RequestId.of("x" + "ü".repeat(40))), 8 + 64, (m, at) ->
        assertThat(new EventReader().wrap(m, at).requestId()).hasToString("x" + "ü".repeat(31)));
    check(w -> w.requestId(3, 2, RequestId.of("")), 8, (m, at) ->
        assertThat(new EventReader().wrap(m, at).requestId()).hasToString(""));
  }

  @Test
  void aDisabledWriterDoesNothing() {
    EventWriter writer = EventWriter.disabled();
    writer.tokens(1, 1, 1);
    writer.commit();
    assertThat(writer.enabled()).isFalse();
    assertThat(writer.name("x")).isZero();
  }

  private static void check(Consumer<EventWriter> write, int bytes, BiConsumer<MemorySegment, Long> look) {
    EventRing ring = new EventRing();
    EventWriter writer = EventWriter.into(ring);
    write.accept(writer);
    assertThat(ring.tailAcquire()).as("before commit").isZero();
    writer.commit();
    assertThat(ring.tailAcquire()).isEqualTo(bytes);
    long read = ring.drain((memory, offset) -> {
      look.accept(memory, offset);
      return new EventReader().wrap(memory, offset).bytes();
    }, bytes);
    assertThat(read).isEqualTo(1);
  }

  private static int[] ints(MemorySegment memory, long at, int count) {
    int[] values = new int[count];
    for (int i = 0; i < count; i++) {
      values[i] = memory.get(INT, at + 4L * i);
    }
    return values;
  }

  private static long[] longs(MemorySegment memory, long at, int count) {
    long[] values = new long[count];
    for (int i = 0; i < count; i++) {
      values[i] = memory.get(LONG, at + 8L * i);
    }
    return values;
  }
}
