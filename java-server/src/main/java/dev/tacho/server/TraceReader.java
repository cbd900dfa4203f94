package dev.tacho.server;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.engine.simulation.RequestTrace;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Reads a request trace: CSV with a line of names, or one JSON object a line. Names: {@code arrival} in seconds, {@code
 * prompt_tokens}, {@code output_tokens}; and if wanted {@code prefix_group}, any text, and {@code prefix_tokens}, by
 * default the whole prompt. Empty lines are passed over. What is wrong is said with its line.
 */
final class TraceReader {
  private static final String ARRIVAL = "arrival";
  private static final String PROMPT = "prompt_tokens";
  private static final String OUTPUT = "output_tokens";
  private static final String GROUP = "prefix_group";
  private static final String PREFIX = "prefix_tokens";
  private static final List<String> NAMES = List.of(ARRIVAL, PROMPT, OUTPUT, GROUP, PREFIX);
  private static final List<String> NEEDED = List.of(ARRIVAL, PROMPT, OUTPUT);

  private final Path file;
  private final RequestTrace trace = new RequestTrace();
  private final Map<String, Integer> groups = new HashMap<>();
  private final List<String> columns = new ArrayList<>();
  private int line;

  private TraceReader(Path file) {
    this.file = file;
  }

  /**
   * Reads a file.
   *
   * @throws CommandFailedException if it cannot be read or a line is wrong
   */
  static RequestTrace read(Path file) {
    TraceReader reader = new TraceReader(file);
    try (BufferedReader lines = Files.newBufferedReader(file)) {
      reader.readAll(lines);
    } catch (IllegalArgumentException e) {
      throw reader.fault(String.valueOf(e.getMessage()));
    } catch (IOException e) {
      throw new CommandFailedException("trace " + file + " cannot be read: " + e);
    }
    return reader.trace;
  }

  private void readAll(BufferedReader lines) throws IOException {
    boolean json = false;
    for (String text = lines.readLine(); text != null; text = lines.readLine()) {
      line++;
      if (text.isBlank()) {
        continue;
      }
      if (trace.size() == 0 && columns.isEmpty() && !json) {
        json = text.stripLeading().startsWith("{");
        if (!json) {
          readNames(text);
          continue;
        }
      }
      if (json) {
        readJson(text);
      } else {
        readRow(text);
      }
    }
    if (trace.size() == 0) {
      throw new CommandFailedException("trace " + file + " has no request");
    }
  }

  private void readNames(String text) {
    for (String name : text.split(",", -1)) {
      checkName(name.strip());
      if (columns.contains(name.strip())) {
        throw new IllegalArgumentException("the column '" + name.strip() + "' is there twice");
      }
      columns.add(name.strip());
    }
    for (String name : NEEDED) {
      if (!columns.contains(name)) {
        throw new IllegalArgumentException("the column '" + name + "' is missing");
      }
    }
  }

  private static void checkName(String name) {
    if (!NAMES.contains(name)) {
      throw new IllegalArgumentException("'" + name + "' is none of " + String.join(", ", NAMES));
    }
  }

  private void readRow(String text) {
    String[] cells = text.split(",", -1);
    if (cells.length != columns.size()) {
      throw new IllegalArgumentException(cells.length + " values for " + columns.size() + " columns");
    }
    add(
        name -> {
          int column = columns.indexOf(name);
          return column < 0 || cells[column].isBlank() ? null : cells[column].strip();
        });
  }

  private void readJson(String text) {
    JsonNode row;
    try {
      row = Json.read(text);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("no JSON: " + e.getOriginalMessage(), e);
    }
    if (!row.isObject()) {
      throw new IllegalArgumentException("no JSON object");
    }
    row.fieldNames().forEachRemaining(TraceReader::checkName);
    add(name -> row.path(name).isValueNode() && !row.path(name).isNull() ? row.path(name).asText() : null);
  }

  private void add(Function<String, @Nullable String> value) {
    String group = value.apply(GROUP);
    String prefix = value.apply(PREFIX);
    if (group == null && prefix != null) {
      throw new IllegalArgumentException(PREFIX + " without " + GROUP);
    }
    int prompt = count(PROMPT, needed(PROMPT, value));
    trace.add(
        seconds(needed(ARRIVAL, value)),
        prompt,
        count(OUTPUT, needed(OUTPUT, value)),
        group == null ? RequestTrace.NO_GROUP : groups.computeIfAbsent(group, name -> groups.size()),
        prefix == null ? prompt : count(PREFIX, prefix));
  }

  private static String needed(String name, Function<String, @Nullable String> value) {
    String text = value.apply(name);
    if (text == null) {
      throw new IllegalArgumentException(name + " is missing");
    }
    return text;
  }

  private static int count(String name, String text) {
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(name + " is no whole number below 2^31: '" + text + "'", e);
    }
  }

  private static double seconds(String text) {
    try {
      return Double.parseDouble(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("arrival is no number of seconds: '" + text + "'", e);
    }
  }

  private CommandFailedException fault(String problem) {
    return new CommandFailedException("trace " + file + ", line " + line + ": " + problem);
  }
}
