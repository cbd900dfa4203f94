package dev.tacho.engine;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/**
 * Recorded or computed cases: from the folder that the property {@code tacho.golden.dir} names, every file whose name
 * begins so and that has a list of cases, or else from a test resource.
 */
public final class GoldenFile {
  private static final ObjectMapper JSON = new ObjectMapper();

  private GoldenFile() {}

  /**
   * Reads cases.
   *
   * @param prefix of the files' names, which end with {@code .json} or {@code .json.gz}
   * @param resource gzipped, for when no folder is named
   */
  public static Stream<JsonNode> cases(String prefix, String resource) {
    List<JsonNode> cases = new ArrayList<>();
    String folder = System.getProperty("tacho.golden.dir");
    try {
      if (folder == null) {
        add(cases, GoldenFile.class.getResourceAsStream(resource), resource);
      } else {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Path.of(folder), prefix + "*.json{,.gz}")) {
          for (Path file : files) {
            add(cases, Files.newInputStream(file), file.toString());
          }
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return cases.stream();
  }

  /** The cases of small units, of one kind. */
  public static Stream<JsonNode> stats(String kind) {
    return cases("stats", "/golden/stats-engine.json.gz").filter(c -> c.path("kind").asText().equals(kind));
  }

  private static void add(List<JsonNode> cases, @Nullable InputStream stream, String name) throws IOException {
    if (stream == null) {
      throw new IOException(name + " is missing");
    }
    try (InputStream in = name.endsWith(".gz") ? new GZIPInputStream(stream) : stream) {
      JSON.readTree(in).path("cases").forEach(cases::add);
    }
  }
}
