package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.GraphStat;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** The table of the CUDA graphs that ran, the most used first. */
final class GraphTable implements LogPart {
  private static final List<String> HEAD =
      List.of("Unpadded Tokens", "Padded Tokens", "Num Paddings", "Runtime Mode", "Count");

  private final String mode;
  private final List<Integer> captureSizes;
  private final Map<GraphStat, Integer> counts = new LinkedHashMap<>();

  GraphTable(String mode, List<Integer> captureSizes) {
    this.mode = mode;
    this.captureSizes = List.copyOf(captureSizes);
  }

  @Override
  public void record(SchedulerStats stats) {
    GraphStat graph = stats.graph();
    if (graph != null) {
      counts.merge(graph, 1, Integer::sum);
    }
  }

  @Override
  public void log(long nanos, Consumer<String> line) {
    if (counts.isEmpty()) {
      return;
    }
    List<List<String>> rows = new ArrayList<>();
    counts.entrySet().stream().sorted(Map.Entry.<GraphStat, Integer>comparingByValue().reversed()).forEach(e -> {
      GraphStat graph = e.getKey();
      rows.add(List.of(String.valueOf(graph.unpaddedTokens()), String.valueOf(graph.paddedTokens()),
          String.valueOf(graph.paddings()), graph.runtimeMode(), String.valueOf(e.getValue())));
    });
    counts.clear();
    line.accept("**CUDAGraph Config Settings:**\n\n- Mode: " + mode + "\n- Capture sizes: " + captureSizes
        + "\n\n**CUDAGraph Stats:**\n\n" + table(rows));
  }

  private static String table(List<List<String>> rows) {
    int[] widths = HEAD.stream().mapToInt(String::length).toArray();
    for (List<String> row : rows) {
      for (int i = 0; i < widths.length; i++) {
        widths[i] = Math.max(widths[i], row.get(i).length());
      }
    }
    StringBuilder text = new StringBuilder();
    line(text, HEAD, widths);
    for (int width : widths) {
      text.append('|').append("-".repeat(width + 2));
    }
    text.append("|\n");
    rows.forEach(row -> line(text, row, widths));
    return text.toString();
  }

  private static void line(StringBuilder text, List<String> cells, int[] widths) {
    for (int i = 0; i < widths.length; i++) {
      text.append("| ").append(cells.get(i)).append(" ".repeat(widths[i] - cells.get(i).length() + 1));
    }
    text.append("|\n");
  }
}
