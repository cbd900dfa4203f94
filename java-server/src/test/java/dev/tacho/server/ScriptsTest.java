package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The scripts' grammar and what they make of their arguments; nothing is built or started. */
class ScriptsTest {
  private static final Path SCRIPTS = BundledModel.ROOT.resolve("scripts").toAbsolutePath().normalize();

  @TempDir Path directory;

  private String javaOptions = "-Xlast";
  private String aotOutput = "";

  private record Answer(int code, String text) {}

  private static Answer run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(30, TimeUnit.SECONDS)).as("%s ends", String.join(" ", command)).isTrue();
    return new Answer(process.exitValue(), text);
  }

  /** A directory like a JDK's, whose java says another version than the file that is there for it. */
  private Path jdk(String name, String releaseVersion, String javaVersion) throws IOException {
    Path home = Files.createDirectories(directory.resolve(name));
    if (!releaseVersion.isEmpty()) {
      Files.writeString(home.resolve("release"), "IMPLEMENTOR=\"Any\"\nJAVA_VERSION=\"" + releaseVersion + "\"\n");
    }
    Path bin = Files.createDirectories(home.resolve("bin"));
    for (String program : List.of("java", "javac")) {
      Path file = bin.resolve(program);
      Files.writeString(file, "#!/bin/sh\necho 'openjdk version \"" + javaVersion + "\" 2026-01-01' >&2\n");
      assertThat(file.toFile().setExecutable(true)).isTrue();
    }
    return home;
  }

  private Answer findJdk(Path home) throws IOException, InterruptedException {
    return run("env", "TACHO_JAVA_HOME=" + home, SCRIPTS.resolve("find-jdk").toString());
  }

  @ParameterizedTest
  @CsvSource({
    "25.0.3, 17.0.1, true",
    "25, 17.0.1, true",
    "26-ea, 17.0.1, true",
    "21.0.2, 25.0.3, false",
    "1.8.0_202, 25.0.3, false",
    "'', 25.0.3, true",
    "'', 21.0.2, false",
  })
  void aJdkSaysItsVersionInAFileOrElseItsJavaDoes(String release, String java, boolean fits) throws Exception {
    Path home = jdk("jdk", release, java);
    String refusal = "TACHO_JAVA_HOME=" + home + " is no JDK of at least 25";
    assertThat(findJdk(home)).isEqualTo(fits ? new Answer(0, home + "\n") : new Answer(1, refusal + "\n"));
  }

  /** The launcher in a tree of its own, with a java that prints what it is called with. */
  private List<String> launched(String... arguments) throws IOException, InterruptedException {
    Path home = jdk("jdk", "25.0.3", "25.0.3");
    Files.writeString(home.resolve("bin/java"), "#!/bin/sh\nprintf '%s\\n' \"$@\"\nenv | grep ^TACHO_AOT\nexit 0\n");
    Path scripts = Files.createDirectories(directory.resolve("scripts"));
    for (String name : List.of("tacho", "find-jdk")) {
      Files.copy(
          SCRIPTS.resolve(name),
          scripts.resolve(name),
          StandardCopyOption.COPY_ATTRIBUTES,
          StandardCopyOption.REPLACE_EXISTING);
    }
    Files.createDirectories(target().resolve("lib"));
    Files.writeString(target().resolve("tacho-server.jar"), "");
    List<String> command = new ArrayList<>();
    command.addAll(List.of("env", "TACHO_JAVA_HOME=" + home, "TACHO_JAVA_OPTS=" + javaOptions));
    command.addAll(List.of("TACHO_AOT_OUTPUT=" + aotOutput, scripts + "/tacho"));
    command.addAll(List.of(arguments));
    Answer answer = run(command.toArray(String[]::new));
    assertThat(answer.code()).as(answer.text()).isZero();
    return answer.text().lines().toList();
  }

  private Path target() {
    return directory.resolve("java-server/target");
  }

  @Test
  void theLauncherNamesTheKernelsLibraryIfItLiesUnpacked() throws Exception {
    Path library = target().resolve("META-INF/native/linux-x86_64/libtacho.so");
    Files.createDirectories(library.getParent());
    Files.writeString(library, "");
    List<String> words = launched("generate", "--prompt", "two words");
    assertThat(words)
        .as("what the user chooses comes after the launcher's own")
        .containsSubsequence("-Dtacho.native.path=" + library, "-Xms16m", "-Xlast", "dev.tacho.server.Main")
        .endsWith("generate", "--prompt", "two words");
  }

  @Test
  void theHeapBeginsLargeUnlessItsBoundIsGiven() throws Exception {
    assertThat(launched("doctor")).containsSubsequence("-Xms16m", "-XX:InitialHeapSize=128m");
    for (String bound : List.of("-Xmx100m", "-mx100m", "-XX:MaxRAMPercentage=1", "@options")) {
      javaOptions = bound;
      assertThat(launched("doctor"))
          .contains("-Xms16m", bound)
          .noneMatch(word -> word.startsWith("-XX:InitialHeapSize"));
    }
  }

  @Test
  void theCacheToMakeIsOneOptionAndNotOneOfTacho() throws Exception {
    aotOutput = "/a folder/tacho.aot.new";
    assertThat(launched("doctor"))
        .contains("-XX:AOTCacheOutput=/a folder/tacho.aot.new")
        .noneMatch(word -> word.startsWith("TACHO_AOT_OUTPUT"));
  }

  @Test
  void renewedClassesGoBeforeTheOldOnesUntilTheNextBuild() throws Exception {
    String jar = target().resolve("tacho-server.jar").toString();
    String libraries = target().resolve("lib") + "/*";
    Path renewed = Files.createDirectories(target().resolve("renewed"));
    Files.setLastModifiedTime(renewed, FileTime.fromMillis(System.currentTimeMillis() + 60_000));
    assertThat(launched("doctor")).containsSubsequence("-cp", jar + ":" + renewed + "/*:" + libraries);
    Files.setLastModifiedTime(renewed, FileTime.fromMillis(0));
    assertThat(launched("doctor")).containsSubsequence("-cp", jar + ":" + libraries);
  }

  @Test
  void withoutItTheLibraryIsTakenFromItsJar() throws Exception {
    assertThat(launched("doctor"))
        .noneMatch(word -> word.startsWith("-Dtacho.native.path"))
        .endsWith("dev.tacho.server.Main", "doctor");
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
