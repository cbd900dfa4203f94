package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.stats.OffloadSeries;
import dev.tacho.metrics.stats.SchedulerStats;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** docs/metrics.md is what the catalog says, its recipes are PromQL over families that exist. */
class MetricsDocumentTest {
  private static final Pattern NAME = Pattern.compile("(vllm|tacho):[a-z0-9_]+");

  @Test
  void thePageIsWhatTheCatalogSays() throws IOException {
    Path file = Path.of(System.getProperty("tacho.root"), "docs", "metrics.md");
    if (Boolean.getBoolean("tacho.docs.write")) {
      Files.writeString(file, MetricsDocument.render());
    }
    assertThat(Files.readString(file))
        .as("docs/metrics.md is not current: run  scripts/mvn -pl java-metrics -am test -Dtest=MetricsDocumentTest"
            + " -Dsurefire.failIfNoSpecifiedTests=false -Dtacho.docs.write=true")
        .isEqualTo(MetricsDocument.render());
  }

  @Test
  void promtoolSaysWhatThePageLists() throws Exception {
    EngineFamilies.Builder families =
        EngineFamilies.builder("m", 0, 100).cacheConfig(Map.of("block_size", "16")).speculativeTokens(2).maxAdapters(2)
            .workers(1).offload(OffloadDescription.toHost(1, 1, 1, 1, 2, List.of("disk")));
    for (MetricFamily.Gate gate : MetricFamily.Gate.values()) {
      families.with(gate, true);
    }
    MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
    SchedulerStats stats = new SchedulerStats();
    for (OffloadSeries series : OffloadSeries.values()) {
      stats.offload().report(series, 0, 1);
    }
    registry.join(families.build()).record(0, stats, null);
    for (OperationMetrics.Routes routes : OperationMetrics.Routes.values()) {
      OperationMetrics.begin(registry, routes, routes.operations().get(0)).close();
    }
    new ToolParserMetrics(registry, "m").called(true, true, "responses");
    List<String> listed = new ArrayList<>();
    for (Map.Entry<String, String> line : MetricsDocument.adviceLines()) {
      listed.add(line.getKey() + " " + line.getValue());
    }
    String page = registry.exposition(ExpositionFormat.TEXT_0_0_4);
    assertThat(promtool(page, "check", "metrics")).containsExactlyInAnyOrderElementsOf(listed);
  }

  @Test
  void recipesParse(@TempDir Path folder) throws Exception {
    StringBuilder rules = new StringBuilder("groups:\n- name: recipes\n  rules:\n");
    int number = 0;
    for (String query : PromqlRecipes.all().values()) {
      rules.append("  - record: recipe:").append(number++).append("\n    expr: '").append(query).append("'\n");
    }
    Path file = folder.resolve("recipes.yml");
    Files.writeString(file, rules);
    assertThat(promtool("", "check", "rules", file.toString())).anyMatch(line -> line.contains("SUCCESS"));
  }

  @Test
  void recipesNameFamiliesThatExist() {
    Set<String> samples = new TreeSet<>();
    for (MetricFamily family : MetricCatalog.families()) {
      if (family.type() == MetricFamily.Type.HISTOGRAM) {
        Set.of("_bucket", "_sum", "_count").forEach(end -> samples.add(family.name() + end));
      } else {
        samples.add(family.exposedName());
      }
    }
    PromqlRecipes.all().values().forEach(query -> {
      Matcher names = NAME.matcher(query);
      while (names.find()) {
        assertThat(samples).contains(names.group());
      }
    });
  }

  private static List<String> promtool(String input, String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of("promtool"));
    command.addAll(List.of(arguments));
    Process promtool = new ProcessBuilder(command).redirectErrorStream(true).start();
    try (OutputStream in = promtool.getOutputStream()) {
      in.write(input.getBytes(StandardCharsets.UTF_8));
    }
    String output = new String(promtool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    promtool.waitFor();
    return output.lines().toList();
  }
}
