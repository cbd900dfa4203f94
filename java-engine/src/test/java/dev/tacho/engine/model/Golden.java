package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.zip.GZIPInputStream;

/** Reads reference results and the models behind them. */
final class Golden {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Golden() {}

  /** A packed JSON resource of this package's test data. */
  static JsonNode resource(String name) {
    try (InputStream in = open(name)) {
      return JSON.readTree(in);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A JSON file. */
  static JsonNode file(Path path) {
    try {
      return JSON.readTree(path.toFile());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Unpacks a model of this package's test data into a folder, once. */
  static Path model(String name, Path folder) {
    Path file = folder.resolve(name.replace('/', '_'));
    if (!Files.exists(file)) {
      try (InputStream in = open(name)) {
        Files.copy(in, file);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    return file;
  }

  private static InputStream open(String name) throws IOException {
    String resource = "/model/" + name + ".gz";
    InputStream in = Golden.class.getResourceAsStream(resource);
    return new GZIPInputStream(Objects.requireNonNull(in, resource));
  }

  /** An array of ids. */
  static int[] ids(JsonNode array) {
    return JSON.convertValue(array, int[].class);
  }

  /** An array of numbers. */
  static double[] numbers(JsonNode array) {
    return JSON.convertValue(array, double[].class);
  }

  /**
   * Compares logits with the reference's best at each step.
   *
   * @param steps for each step a list of pairs of id and logit
   * @param logits of the same steps
   * @param tolerance relative to the logit
   */
  static void assertTopLogits(JsonNode steps, List<float[]> logits, double tolerance) {
    assertThat(logits).hasSameSizeAs(steps);
    for (int step = 0; step < logits.size(); step++) {
      for (JsonNode best : steps.get(step)) {
        int id = best.get(0).asInt();
        double expected = best.get(1).asDouble();
        assertThat(Math.abs(logits.get(step)[id] - expected))
            .as("step %s, id %s: %s for %s", step, id, logits.get(step)[id], expected)
            .isLessThanOrEqualTo(tolerance * Math.abs(expected));
      }
    }
  }
}
