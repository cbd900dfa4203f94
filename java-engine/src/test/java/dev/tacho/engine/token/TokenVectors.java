package dev.tacho.engine.token;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tacho.engine.format.GgufFile;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.GZIPInputStream;

/** The vocabularies and vectors in the test resources; tokenizers are shared by all tests and never closed. */
final class TokenVectors {
  /** Names of the vocabularies. */
  static final List<String> VOCABULARIES =
      List.of("spm-llama", "spm-gemma", "bpe-gpt2", "bpe-llama3", "bpe-qwen2", "bpe-o200k");

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, Tokenizer> TOKENIZERS = new ConcurrentHashMap<>();

  private TokenVectors() {}

  static Path file(String vocabulary) {
    try {
      return Path.of(
          Objects.requireNonNull(TokenVectors.class.getResource("/token/" + vocabulary + ".gguf"))
              .toURI());
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    }
  }

  static Tokenizer tokenizer(String vocabulary) {
    return TOKENIZERS.computeIfAbsent(
        vocabulary,
        name -> {
          try (GgufFile file = GgufFile.open(file(name))) {
            return Tokenizer.of(file);
          }
        });
  }

  static JsonNode json(String name) {
    String resource = "/token/" + name + ".json.gz";
    try (InputStream in =
        Objects.requireNonNull(TokenVectors.class.getResourceAsStream(resource))) {
      return JSON.readTree(new GZIPInputStream(in));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static int[] ids(JsonNode array) {
    int[] ids = new int[array.size()];
    for (int i = 0; i < ids.length; i++) {
      ids[i] = array.get(i).asInt();
    }
    return ids;
  }
}
