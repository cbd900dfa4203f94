package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Stop strings in pieces of text. */
class StopStringFilterTest {
  @Test
  void holdsBackOnlyWhatMayBecomeAStopString() {
    StopStringFilter filter = new StopStringFilter(List.of("END", "DONE"));
    assertThat(filter.append("the E")).isEqualTo("the ");
    assertThat(filter.append("N")).isEmpty();
    assertThat(filter.append("emy DO")).isEqualTo("ENemy ");
    assertThat(filter.append("N")).isEmpty();
    assertThat(filter.found()).isNull();
    assertThat(filter.append("E!")).isEmpty();
    assertThat(filter.found()).isEqualTo("DONE");
  }

  @Test
  void aBeginningInsideABeginningIsKept() {
    StopStringFilter filter = new StopStringFilter(List.of("aab"));
    assertThat(filter.append("aaa")).isEqualTo("a");
    assertThat(filter.append("b")).isEmpty();
    assertThat(filter.found()).isEqualTo("aab");
  }

  @Test
  void theOneThatIsCompleteFirstWinsAndThenTheLongerOne() {
    StopStringFilter first = new StopStringFilter(List.of("bcde", "cd"));
    assertThat(first.append("abcdef")).isEqualTo("ab");
    assertThat(first.found()).isEqualTo("cd");
    StopStringFilter longer = new StopStringFilter(List.of("b", "ab"));
    assertThat(longer.append("xab")).isEqualTo("x");
    assertThat(longer.found()).isEqualTo("ab");
  }

  @Test
  void passShowsEverythingWithoutLooking() {
    StopStringFilter filter = new StopStringFilter(List.of("ab"));
    assertThat(filter.append("a")).isEmpty();
    assertThat(filter.pass("b")).isEqualTo("ab");
    assertThat(filter.found()).isNull();
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4})
  void whereThePiecesEndMakesNoDifference(long seed) {
    Random random = new Random(seed);
    for (int round = 0; round < 5_000; round++) {
      List<String> stops = new ArrayList<>();
      for (int i = random.nextInt(1, 4); i > 0; i--) {
        stops.add(letters(random, random.nextInt(1, 5)));
      }
      String text = letters(random, random.nextInt(0, 30));
      int end = firstEnd(text, stops);
      StopStringFilter filter = new StopStringFilter(stops);
      StringBuilder shown = new StringBuilder();
      for (int at = 0; at < text.length() && filter.found() == null; ) {
        int next = Math.min(text.length(), at + random.nextInt(1, 6));
        shown.append(filter.append(text.substring(at, next)));
        at = next;
      }
      String found = filter.found();
      if (end < 0) {
        shown.append(filter.pass(""));
        assertThat(found).isNull();
        assertThat(shown).hasToString(text);
      } else {
        assertThat(found).isNotNull().isIn(stops);
        assertThat(text).startsWith(shown + found);
        assertThat(shown.length() + found.length()).as("%s in %s", stops, text).isEqualTo(end);
      }
    }
  }

  private static String letters(Random random, int length) {
    return random.ints(length, 'a', 'd').collect(StringBuilder::new, StringBuilder::appendCodePoint, (a, b) -> {})
        .toString();
  }

  /** End of the stop string that a reader of single letters would see complete first, -1 if there is none. */
  private static int firstEnd(String text, List<String> stops) {
    for (int end = 1; end <= text.length(); end++) {
      for (String stop : stops) {
        if (text.startsWith(stop, end - stop.length())) {
          return end;
        }
      }
    }
    return -1;
  }
}
