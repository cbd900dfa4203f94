package dev.tacho.engine.parallel;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class WorkShareTest {
  private static final int MOST_ITEMS = 70;

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 5})
  void everyItemIsTakenOnceAndTheNumberOfPiecesIsAlwaysTheSame(int size) {
    int[] before = new int[MOST_ITEMS + 1];
    for (int round = 0; round < 20; round++) {
      AtomicIntegerArray taken = new AtomicIntegerArray((MOST_ITEMS + 1) * MOST_ITEMS);
      AtomicIntegerArray pieces = new AtomicIntegerArray(MOST_ITEMS + 1);
      try (WorkerTeam team = new WorkerTeam("share", size)) {
        team.launch(
            member -> {
              WorkShare share = new WorkShare(member);
              for (int items = 0; items <= MOST_ITEMS; items++) {
                share.begin(items, true);
                while (share.next()) {
                  assertThat(share.first()).isLessThan(share.end());
                  pieces.getAndIncrement(items);
                  for (int i = share.first(); i < share.end(); i++) {
                    taken.getAndIncrement(items * MOST_ITEMS + i);
                  }
                }
                member.barrier();
              }
            });
        team.await();
      }
      for (int items = 0; items <= MOST_ITEMS; items++) {
        for (int i = 0; i < MOST_ITEMS; i++) {
          assertThat(taken.get(items * MOST_ITEMS + i)).as("item %d of %d", i, items).isEqualTo(i < items ? 1 : 0);
        }
        if (round > 0) {
          assertThat(pieces.get(items)).as("pieces of %d items", items).isEqualTo(before[items]);
        }
        before[items] = pieces.get(items);
      }
    }
  }

  @Test
  void whoeverIsHeldUpLosesTheSecondHalfOfItsShareToTheOther() {
    int[] done = new int[2];
    try (WorkerTeam team = new WorkerTeam("share", 2)) {
      team.launch(
          member -> {
            WorkShare share = new WorkShare(member);
            if (member.index() == 0) {
              member.barrier();
              return;
            }
            share.begin(160, true);
            while (share.next()) {
              done[1] += share.end() - share.first();
            }
            member.barrier();
          });
      team.await();
    }
    assertThat(done[1]).as("its own 80 and 40 of the other's").isEqualTo(120);
  }

  @Test
  void piecesGetShorterSoThatAllEndTogether() {
    int[] lengths = new int[18];
    try (WorkerTeam team = new WorkerTeam("share", 2)) {
      team.launch(
          member -> {
            WorkShare share = new WorkShare(member);
            if (member.index() == 0) {
              share.begin(1024, true);
              for (int i = 0; share.next(); i++) {
                lengths[i] = share.end() - share.first();
              }
            }
            member.barrier();
          });
      team.await();
    }
    assertThat(lengths)
        .as("its own half, then by turns of both second halves")
        .containsExactly(256, 128, 128, 64, 64, 32, 32, 16, 16, 8, 8, 4, 4, 2, 2, 2, 2, 0);
  }

  @Test
  void aWholeShareIsTheEqualOne() {
    try (WorkerTeam team = new WorkerTeam("share", 2)) {
      int[] borders = new int[4];
      team.launch(
          member -> {
            WorkShare share = new WorkShare(member);
            share.begin(7, false);
            assertThat(share.next()).isTrue();
            borders[2 * member.index()] = share.first();
            borders[2 * member.index() + 1] = share.end();
            assertThat(share.next()).isFalse();
          });
      team.await();
      assertThat(borders).containsExactly(0, 3, 3, 7);
    }
  }
}
