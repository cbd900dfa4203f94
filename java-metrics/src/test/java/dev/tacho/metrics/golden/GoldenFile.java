package dev.tacho.metrics.golden;

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
 * The computed cases of one kind: from the folder that the property {@code tacho.golden.dir} names, every file {@code
 * KIND*.json} and {@code KIND*.json.gz} with a list of cases, or else from the test resources.
 */
public final class GoldenFile {
  private static final ObjectMapper JSON = new ObjectMapper();

  private GoldenFile() {}

  /** The cases of a kind, such as {@code interval}. */
  public static Stream<JsonNode> cases(String kind) {
    List<JsonNode> cases = new ArrayList<>();
    String folder = System.getProperty("tacho.golden.dir");
    try {
      if (folder == null) {
        String name = "/golden/" + kind + "-golden-visible.json.gz";
        add(cases, GoldenFile.class.getResourceAsStream(name), name);
      } else {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(Path.of(folder), kind + "*.json*")) {
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

  private static void add(List<JsonNode> cases, @Nullable InputStream stream, String name) throws IOException {
    if (stream == null) {
      throw new IOException(name + " is missing");
    }
    try (InputStream in = name.endsWith(".gz") ? new GZIPInputStream(stream) : stream) {
      JSON.readTree(in).path("cases").forEach(cases::add);
    }
  }
}
