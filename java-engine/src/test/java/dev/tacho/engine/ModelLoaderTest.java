package dev.tacho.engine;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is built beside each other ends together. */
class ModelLoaderTest {
  @TempDir Path directory;

  private static Set<Thread> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("tacho"))
        .collect(Collectors.toSet());
  }

  /** The bundled model with another kind of tokenizer. */
  private Path withTokenizer(String kind) throws IOException {
    String key = "tokenizer.ggml.model";
    String content = Files.readString(BundledModel.path(), ISO_8859_1);
    int type = content.indexOf(key) + key.length();
    int value = type + Integer.BYTES + Long.BYTES;
    assertThat(content.substring(value, value + kind.length())).isEqualTo("llama");
    String changed = content.substring(0, value) + kind + content.substring(value + kind.length());
    return Files.writeString(directory.resolve("model.gguf"), changed, ISO_8859_1);
  }

  /** It is waited for when all else is there: workers, weights, KV cache and runner. */
  @Test
  void aTokenizerThatCannotBeBuiltIsReportedAndTakesTheRestAlong() throws IOException {
    Set<Thread> before = threads();
    EngineConfig config = BundledModel.config().model(withTokenizer("lambs")).threads(2).build();
    assertThatThrownBy(() -> ModelLoader.load(config))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("tokenizer model \"lambs\"");
    Set<Thread> left = threads();
    left.removeAll(before);
    assertThat(left).isEmpty();
  }
}
