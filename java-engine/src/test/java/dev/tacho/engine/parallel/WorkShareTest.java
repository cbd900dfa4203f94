package dev.tacho.engine.parallel;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(60)
class WorkShareTest {
  private static final int MOST_ITEMS = 70;

  @ParameterizedTest
  @CsvSource({"1, 1", "2, 1", "3, 1", "5, 1", "2, 4", "3, 16", "2, 100"})
  void everyItemIsTakenOnceAndTheNumberOfPiecesIsAlwaysTheSame(int size, int least) {
    int[] before = new int[MOST_ITEMS + 1];
    for (int round = 0; round < 20; round++) {
      AtomicIntegerArray taken = new AtomicIntegerArray((MOST_ITEMS + 1) * MOST_ITEMS);
      AtomicIntegerArray pieces = new AtomicIntegerArray(MOST_ITEMS + 1);
      try (WorkerTeam team = new WorkerTeam("share", size)) {
        team.launch(
            member -> {
              WorkShare share = new WorkShare(member);
              for (int items = 0; items <= MOST_ITEMS; items++) {
                share.begin(items, least);
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
            share.begin(160, 1);
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
    assertThat(lengthsOfPieces(1))
        .as("its own half, then by turns of both second halves")
        .containsExactly(256, 128, 128, 64, 64, 32, 32, 16, 16, 8, 8, 4, 4, 2, 2, 2, 2);
  }

  @Test
  void noPieceIsShorterThanTheLeast() {
    assertThat(lengthsOfPieces(64)).containsExactly(256, 128, 128, 64, 64, 64, 64);
    assertThat(lengthsOfPieces(65)).containsExactly(256, 128, 128, 128, 128);
    assertThat(lengthsOfPieces(300)).as("a half that is shorter").containsExactly(256, 256, 256);
  }

  /** Of 1,024 items, which one of two members takes all but the first half of the other. */
  private static List<Integer> lengthsOfPieces(int least) {
    List<Integer> lengths = new ArrayList<>();
    try (WorkerTeam team = new WorkerTeam("share", 2)) {
      team.launch(
          member -> {
            WorkShare share = new WorkShare(member);
            if (member.index() == 0) {
              share.begin(1024, least);
              while (share.next()) {
                lengths.add(share.end() - share.first());
              }
            }
            member.barrier();
          });
      team.await();
    }
    return lengths;
  }
}
