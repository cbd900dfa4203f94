package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The scripts' grammar and what they make of their arguments; nothing is built or started. */
class ScriptsTest {
  private static final Path SCRIPTS = BundledModel.ROOT.resolve("scripts").toAbsolutePath().normalize();

  private record Answer(int code, String text) {}

  private static Answer run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(30, TimeUnit.SECONDS)).as("%s ends", String.join(" ", command)).isTrue();
    return new Answer(process.exitValue(), text);
  }

  private static List<Path> bashScripts() throws IOException {
    try (Stream<Path> files = Files.list(SCRIPTS)) {
      return files.filter(ScriptsTest::isForBash).sorted().toList();
    }
  }

  private static boolean isForBash(Path file) {
    try (Stream<String> lines = Files.lines(file)) {
      return lines.findFirst().orElse("").matches("#!.*\\b(ba)?sh");
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  @ParameterizedTest
  @MethodSource("bashScripts")
  void parse(Path script) throws Exception {
    assertThat(run("bash", "-n", script.toString())).isEqualTo(new Answer(0, ""));
  }

  @ParameterizedTest
  @CsvSource({
    "test --fast, unknown option --fast",
    "test --quick --full, --quick and --full exclude each other",
    "test --golden /no/such/folder, '--golden needs a directory, not \"/no/such/folder\"'",
    "test --golden, '--golden needs a directory, not \"\"'",
    "soak --minutes 0, '--minutes needs a whole number above 0, not \"0\"'",
    "soak --forever, unknown option --forever",
    "demo --twice, unknown option --twice",
    "build --slowly, unknown option --slowly",
    "bench nothing, usage: scripts/bench",
  })
  void wrongUsageEndsWithTwoAndSaysWhy(String command, String words) throws Exception {
    String[] arguments = command.split(" ");
    arguments[0] = SCRIPTS.resolve(arguments[0]).toString();
    Answer answer = run(arguments);
    assertThat(answer.text()).contains(words);
    assertThat(answer.code()).isEqualTo(2);
  }

  @Test
  void theHelpOfTestNamesEveryModeAndNothingThatIsNoComment() throws Exception {
    Answer answer = run(SCRIPTS.resolve("test").toString(), "--help");
    assertThat(answer.code()).isZero();
    assertThat(answer.text()).contains("--quick ", "--full ", "--sanitize ", "--golden ", "Exit codes: 0")
        .doesNotContain("pipefail");
  }
}
