package dev.tacho.engine.token;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.format.GgufStrings;
import dev.tacho.engine.format.GgufWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Texts are found as a map of strings finds them. */
class TextIndexTest {
  @TempDir Path directory;

  private GgufStrings strings(List<String> texts) throws IOException {
    byte[] content = new GgufWriter().strings("texts", texts).toByteArray();
    try (GgufFile file = GgufFile.open(Files.write(directory.resolve("texts.gguf"), content))) {
      return file.strings("texts");
    }
  }

  @ParameterizedTest(name = "{1} texts, seed {0}")
  @CsvSource({"1, 0", "2, 1", "3, 2", "4, 3", "5, 1000", "6, 65536"})
  void theFirstOfEachText(long seed, int count) throws IOException {
    Random random = new Random(seed);
    List<String> texts = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      StringBuilder text = new StringBuilder();
      for (int length = random.nextInt(5); length > 0; length--) {
        text.appendCodePoint("\u0000ab ~éĠ▁世😀".codePointAt(random.nextInt(9)));
      }
      texts.add(text.toString().replaceAll("[\ud800-\udfff]", "?"));
    }
    TextIndex index = new TextIndex(strings(texts));
    Map<String, Integer> first = new HashMap<>();
    for (int i = 0; i < count; i++) {
      assertThat(index.isFirst(i)).as("text %s is new", i).isEqualTo(first.putIfAbsent(texts.get(i), i) == null);
    }
    for (String text : List.of("", "a", "ab", "ba ~", "\u0000", "\u0000\u0000", "世", "nowhere", "abababab")) {
      byte[] within = ("x" + text + "y").getBytes(StandardCharsets.UTF_8);
      assertThat(index.find(within, 1, within.length - 1)).as(text).isEqualTo(first.getOrDefault(text, -1));
    }
    for (String text : texts) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      assertThat(index.find(bytes, 0, bytes.length)).as(text).isEqualTo(first.get(text));
    }
  }
}
