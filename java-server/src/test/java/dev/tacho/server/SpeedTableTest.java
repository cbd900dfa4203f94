package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What {@code scripts/bench table} makes of figures that are there; nothing is measured. */
class SpeedTableTest {
  private static final String HEADER = "{\"machine\": \"any CPU; commit abc\", \"command\": \"scripts/bench table\"}";
  private static final String READINGS = "(\"memory_gb_per_second\": )\\[[^]]*]";
  private static final List<String> MODELS = List.of("q4_0", "q8_0", "q4_k_m", "bf16");

  @TempDir Path directory;

  private record Answer(int code, String text) {
    /** The cells of the only line that begins with these. */
    List<String> line(String first, String second) {
      List<String> found =
          text.lines().filter(line -> line.startsWith("| " + first + " | " + second)).toList();
      assertThat(found).as("%s, %s in%n%s", first, second, text).hasSize(1);
      return List.of(found.getFirst().substring(2).split(" \\| |\\|"));
    }
  }

  private Answer report(List<String> lines, String rows) throws IOException, InterruptedException {
    Path file = Files.write(directory.resolve("table.jsonl"), lines);
    return run("--report", file.toString(), "--only", rows);
  }

  private static Answer run(String... arguments) throws IOException, InterruptedException {
    String script = BundledModel.ROOT.resolve("bench/table.py").toString();
    List<String> command = new ArrayList<>(List.of("python3", "-B", script));
    command.addAll(List.of(arguments));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
    return new Answer(process.exitValue(), text);
  }

  private static String round(String row, String subject, int number, String figures) {
    return "{\"row\": \"%s\", \"subject\": \"%s\", \"round\": %d, \"figures\": {%s}}"
        .formatted(row, subject, number, figures);
  }

  /** With memory read at 20 GB/s before and behind it. */
  private static String decode(String name, double tokensPerSecond, double attentionBytes) {
    return String.format(
        Locale.ROOT,
        "\"%s\": {\"tokens_per_second\": %f, \"foreign\": 0.01, \"memory_gb_per_second\": [20, 20], "
            + "\"bytes_per_token\": 1e8, \"attention_bytes_per_token\": %f}",
        name, tokensPerSecond, attentionBytes);
  }

  private static String beside(double ours, double theirs) {
    return beside(ours, theirs, 20);
  }

  /** With memory read at 20 GB/s before and behind ours, and at this speed behind the other's. */
  private static String beside(double ours, double theirs, double gigabytesPerSecond) {
    return String.format(
        Locale.ROOT,
        "%s, \"llama.cpp\": {\"tokens_per_second\": %f, \"foreign\": 0.02, \"memory_gb_per_second\": [20, %f]}",
        decode("tacho", ours, 0), theirs, gigabytesPerSecond);
  }

  /** Three rounds of decoding of each model, whose ratios are 1.5, 1.2 and 3; those of one model are others. */
  private static List<String> decodes(String other, double... ratios) {
    List<String> lines = new ArrayList<>(List.of(HEADER));
    for (String shape : List.of("1b-", "125m-")) {
      for (String type : MODELS) {
        boolean same = !other.equals(shape + type);
        lines.add(round("decode", shape + type, 0, beside(10 * (same ? 1.5 : ratios[0]), 10)));
        lines.add(round("decode", shape + type, 1, beside(100 * (same ? 1.2 : ratios[1]), 100)));
        lines.add(round("decode", shape + type, 2, beside(20 * (same ? 3 : ratios[2]), 20)));
      }
    }
    return lines;
  }

  @Test
  void theMedianOfTheRatiosOfEachRoundIsJudged() throws Exception {
    Answer answer = report(decodes("125m-bf16", 1.1, 1.3, 0.9), "decode");
    assertThat(answer.code()).as(answer.text()).isZero();
    assertThat(answer.text().lines())
        .first()
        .isEqualTo("any CPU; commit abc; up to 3 rounds, 0 disturbed, 0 unsteady; `scripts/bench table`");
    assertThat(answer.line("decode, one sequence, to llama.cpp", "1.10 (125m-bf16)"))
        .containsExactly(
            "decode, one sequence, to llama.cpp", "1.10 (125m-bf16)", "≥ 1.10", "held",
            "`scripts/bench table --only decode` ");
    // Of medians: 60 of 20.
    assertThat(answer.line("decode, one sequence, to llama.cpp", "1b-q4_0"))
        .containsExactly(
            "decode, one sequence, to llama.cpp", "1b-q4_0", "1.50", "1.10", "held", "3",
            "1.20 to 3.00, of medians 3.00 ");
    // 60 tokens of 100 MB a second, of 20 GB/s.
    assertThat(answer.line("1b-q4_0", "decode"))
        .containsExactly("1b-q4_0", "decode", "60.00", "20.00", "1.50 (1.20 to 3.00)", "3.00", "20 to 20", "30 %",
            "0.020 ");
  }

  @Test
  void aFloorThatIsMissedOrWasNotMeasuredEndsWithOneAndIsNamed() throws Exception {
    Answer missed = report(decodes("1b-q8_0", 1.0, 1.09, 2), "decode");
    assertThat(missed.code()).isEqualTo(1);
    assertThat(missed.text()).contains("| 1.09 (1b-q8_0) | ≥ 1.10 | 1b-q8_0 **missed** |");
    assertThat(missed.text().lines()).contains("decode, one sequence, to llama.cpp, 1b-q8_0: missed");
    List<String> lines = decodes("", 0, 0, 0);
    lines.removeIf(line -> line.contains("125m-q4_k_m"));
    Answer absent = report(lines, "decode");
    assertThat(absent.code()).isEqualTo(1);
    assertThat(absent.text().lines()).contains("decode, one sequence, to llama.cpp, 125m-q4_k_m: not measured");
  }

  @Test
  void aRoundInWhichOthersUsedMuchOfTheMachineDoesNotCount() throws Exception {
    List<String> lines = decodes("1b-q8_0", 1.2, 1.0, 1.0);
    lines.replaceAll(line -> line.contains("1b-q8_0") && !line.contains("round\": 0") ? disturbed(line) : line);
    Answer answer = report(lines, "decode");
    assertThat(answer.code()).as(answer.text()).isZero();
    assertThat(answer.text()).contains("up to 3 rounds, 2 disturbed").contains("| 1b-q8_0 | 1.20 | 1.10 | held | 1 |");
    lines.replaceAll(line -> line.contains("1b-q8_0") ? disturbed(line) : line);
    assertThat(report(lines, "decode").text()).contains("1b-q8_0 not measured");
  }

  @ParameterizedTest
  @CsvSource({"22.39, 3, 0 unsteady", "17.86, 3, 0 unsteady", "22.41, 2, 1 unsteady", "17.85, 2, 1 unsteady"})
  void aRoundInWhichMemoryChangedItsSpeedDoesNotCount(double speed, String counted, String faults) throws Exception {
    List<String> lines = decodes("", 0, 0, 0);
    lines.replaceAll(
        line -> line.contains("1b-q8_0") && line.contains("round\": 1")
            ? round("decode", "1b-q8_0", 1, beside(120, 100, speed))
            : line);
    Answer answer = report(lines, "decode");
    assertThat(answer.text().lines()).first().asString().contains(faults);
    assertThat(answer.line("decode, one sequence, to llama.cpp", "1b-q8_0").get(5)).isEqualTo(counted);
  }

  @Test
  void aRoundOfAnUnknownSpeedOfMemoryDoesNotCount() throws Exception {
    List<String> lines = decodes("", 0, 0, 0);
    lines.replaceAll(line -> line.contains("125m-bf16") ? line.replaceAll(READINGS, "$1[]") : line);
    Answer answer = report(lines, "decode");
    assertThat(answer.text()).contains("3 unsteady").contains("125m-bf16 not measured");
  }

  /** At 25 GB/s and less it is one speed with 20, at more another. */
  @Test
  void roundsOfSeveralSpeedsOfMemoryAreJudgedTogetherAndShownApart() throws Exception {
    List<String> lines = decodes("", 0, 0, 0);
    lines.removeIf(line -> line.contains("1b-q4_0"));
    double[] speeds = {55, 20, 25, 54, 26};
    double[] ratios = {1.4, 1.0, 1.04, 1.3, 1.2};
    for (int i = 0; i < speeds.length; i++) {
      String figures = beside(10 * ratios[i], 10).replaceAll(READINGS, "$1[" + speeds[i] + "]");
      lines.add(round("decode", "1b-q4_0", i, figures));
    }
    Answer answer = report(lines, "decode");
    String goal = "decode, one sequence, to llama.cpp";
    assertThat(answer.line(goal, "1b-q4_0 |"))
        .containsExactly(goal, "1b-q4_0", "1.20", "1.10", "held", "5", "1.00 to 1.40, of medians 1.20 ");
    assertThat(answer.line(goal, "1b-q4_0 at 22 GB/s"))
        .containsExactly(
            goal, "1b-q4_0 at 22 GB/s", "1.02", "1.10", "**missed**", "2", "1.00 to 1.04, of medians 1.02 ");
    assertThat(answer.line(goal, "1b-q4_0 at 26 GB/s").subList(2, 6)).containsExactly("1.20", "1.10", "held", "1");
    assertThat(answer.line(goal, "1b-q4_0 at 54 GB/s").subList(2, 6)).containsExactly("1.35", "1.10", "held", "2");
    assertThat(answer.line("1b-q4_0", "decode").get(6)).isEqualTo("20 to 55");
    assertThat(answer.text()).doesNotContain("1b-q8_0 at");
  }

  @Test
  void onlyTheShapesAskedForAreJudged() throws Exception {
    List<String> lines = decodes("1b-q8_0", 1, 1, 1);
    lines.removeIf(line -> line.contains("1b-q4_0"));
    Path file = Files.write(directory.resolve("table.jsonl"), lines);
    Answer answer = run("--report", file.toString(), "--only", "decode", "--shapes", "125m");
    assertThat(answer.code()).as(answer.text()).isZero();
    assertThat(answer.text()).doesNotContain("1b-").contains("`scripts/bench table --shapes 125m --only decode`");
  }

  private static String disturbed(String line) {
    return line.replace("\"foreign\": 0.02", "\"foreign\": 0.11");
  }

  /** 100 MB more at 20 GB/s take 5 ms. */
  @ParameterizedTest
  @CsvSource({"50, 2.00, 0", "40, 3.00, 1", "100, 0.00, 0"})
  void aLongContextMayCostTwiceTheTimeOfItsBytes(double tokensPerSecond, String value, int code) throws Exception {
    List<String> lines = new ArrayList<>(List.of(HEADER));
    for (String model : List.of("1b-q8_0", "125m-q8_0")) {
      lines.add(round("context", model, 0, decode("near", 100, 1e6) + ", " + decode("far", tokensPerSecond, 101e6)));
    }
    // Of a run that was interrupted while it wrote.
    lines.add("{\"row\": \"context\", \"subject\": \"1b-q8_0\", \"rou");
    Answer answer = report(lines, "context");
    assertThat(answer.code()).as(answer.text()).isEqualTo(code);
    assertThat(answer.line("decode at a long context, more time to that of more KV bytes", "1b-q8_0").get(2))
        .isEqualTo(value);
  }

  @Test
  void theFasterOfTheOtherJvmEnginesCounts() throws Exception {
    List<String> lines = new ArrayList<>(List.of(HEADER));
    for (String model : List.of("1b-q8_0", "1b-q4_0", "125m-q8_0", "125m-q4_0")) {
      String others = ", \"llama3.java\": {\"tokens_per_second\": 8, \"foreign\": 0}";
      others += model.endsWith("q4_0") ? ", \"Jlama\": {\"tokens_per_second\": 10, \"foreign\": 0}" : "";
      lines.add(round("vector_decode", model, 0, decode("tacho", 10, 0) + others));
    }
    Answer answer = report(lines, "vector_decode");
    assertThat(answer.code()).isEqualTo(1);
    String goal = "Vector API provider, decode, to the better JVM engine";
    assertThat(answer.line(goal, "1b-q8_0")).contains("1.25", "held");
    assertThat(answer.line(goal, "125m-q4_0")).contains("1.00", "**missed**");
  }

  @Test
  void streamsAreSetBesideTheServersBestSetting() throws Exception {
    String result = "\"%s\": {\"tokens_per_second\": %d, \"ttft_p50\": 1, \"ttft_p95\": %s, \"foreign\": 0}";
    String figures =
        String.join(
            ", ",
            result.formatted("tacho", 300, "2.0"),
            result.formatted("llama.cpp, 8 slots", 100, "9.0"),
            result.formatted("llama.cpp, 16 slots", 150, "1.8"));
    Answer answer = report(List.of(HEADER, round("streams", "125m-q8_0", 0, figures)), "streams");
    assertThat(answer.code()).isEqualTo(1);
    assertThat(answer.text())
        .contains("| 2.00 (125m-q8_0) | ≥ 1.50 | held |")
        .contains("| 0.90 (125m-q8_0) | ≥ 1.00 | 125m-q8_0 **missed** |");
  }

  @Test
  void startsAndMemoryHaveUpperLimits() throws Exception {
    List<String> lines =
        List.of(
            HEADER,
            round("start", "1b-q8_0", 0, "\"tacho\": 2.2, \"tacho, packed weights kept\": 1.5, \"llama.cpp\": 1.0"),
            round("memory", "1b-q8_0", 0,
                "\"file\": 1e9, \"weights\": 1.1e9, \"kv\": 1e8, \"hwm_ready\": 1.25e9, \"rss_anon\": 1.501e9"));
    Answer answer = report(lines, "start,memory");
    assertThat(answer.code()).isEqualTo(1);
    assertThat(answer.text())
        .contains("| 2.20 (1b-q8_0) | ≤ 2.00 | 1b-q8_0 **missed** |")
        .contains("| 1.50 (1b-q8_0) | ≤ 2.00 | held |")
        .contains("| 301 (1b-q8_0) | ≤ 300 | 1b-q8_0 **missed** |")
        .contains("| 50.00 (1b-q8_0) | ≤ 300 | held |");
  }

  @ParameterizedTest
  @CsvSource({
    "--only=some, some is none of prefill",
    "--shapes=7b, '--shapes: 7b is none of 1b, 125m'",
    "--shapes=125m --only=start, '--only start: no goal for --shapes 125m'",
    "--report=/no/such.jsonl, '--report: no such file: /no/such.jsonl'",
    "--rounds=3, --llama-cpp and --models are needed",
  })
  void wrongUsageEndsWithTwoAndSaysWhy(String arguments, String words) throws Exception {
    Answer answer = run(arguments.split(" "));
    assertThat(answer.code()).isEqualTo(2);
    assertThat(answer.text()).contains(words);
  }
}
