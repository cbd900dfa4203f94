package dev.tacho.engine.token;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.format.GgufFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The native library loads in a process that has no home, leaves nothing behind, and asks nobody. */
class TokenizersLibraryLoaderTest {
  @TempDir Path directory;

  /** What the other process runs. */
  static final class Main {
    private Main() {}

    /** Encodes a text and prints the ids, then what is set in the process afterwards. */
    public static void main(String[] arguments) {
      if (Boolean.getBoolean("preload")) {
        Tokenizer.preload();
        Tokenizer.preload();
      }
      try (GgufFile file = GgufFile.open(Path.of(arguments[0]));
          Tokenizer tokenizer = Tokenizer.of(file)) {
        System.out.println(Arrays.toString(tokenizer.encode(arguments[1], true)));
      }
      for (String name : List.of("OPT_OUT_TRACKING", "ai.djl.offline", "ENGINE_CACHE_DIR")) {
        System.out.println(name + "=" + System.getProperty(name));
      }
    }
  }

  @Test
  void worksWithoutAHomeAndLeavesNothingBehind() throws Exception {
    Path temporary = Files.createDirectory(directory.resolve("tmp"));
    List<String> output = runMain(temporary, "-Duser.home=/nonexistent");
    int[] expected = TokenVectors.tokenizer("spm-llama").encode("Hello there", true);
    assertThat(output)
        .containsExactly(
            Arrays.toString(expected),
            "OPT_OUT_TRACKING=true",
            "ai.djl.offline=null",
            "ENGINE_CACHE_DIR=null");
    try (Stream<Path> left = Files.list(temporary)) {
      assertThat(left.filter(file -> !file.getFileName().toString().startsWith("hsperfdata")))
          .isEmpty();
    }
  }

  @Test
  void preloadingLeavesNothingBehindEither() throws Exception {
    Path temporary = Files.createDirectory(directory.resolve("tmp"));
    List<String> output = runMain(temporary, "-Duser.home=/nonexistent", "-Dpreload=true");
    int[] expected = TokenVectors.tokenizer("spm-llama").encode("Hello there", true);
    assertThat(output).startsWith(Arrays.toString(expected)).endsWith("ENGINE_CACHE_DIR=null");
    try (Stream<Path> left = Files.list(temporary)) {
      assertThat(left.filter(file -> !file.getFileName().toString().startsWith("hsperfdata"))).isEmpty();
    }
  }

  @Test
  void keepsToTheCacheThatTheProcessChose() throws Exception {
    Path temporary = Files.createDirectory(directory.resolve("tmp"));
    Path cache = directory.resolve("cache");
    List<String> output =
        runMain(temporary, "-Duser.home=/nonexistent", "-DENGINE_CACHE_DIR=" + cache);
    assertThat(output).endsWith("ENGINE_CACHE_DIR=" + cache);
    assertThat(cache).isDirectoryRecursivelyContaining("glob:**libtokenizers*");
  }

  private List<String> runMain(Path temporary, String... options)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(
        List.of("--enable-native-access=ALL-UNNAMED", "-Xmx256m", "-Djava.io.tmpdir=" + temporary));
    command.addAll(List.of(options));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
    command.addAll(List.of(TokenVectors.file("spm-llama").toString(), "Hello there"));
    Path output = directory.resolve("output");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
    builder
        .environment()
        .keySet()
        .removeAll(List.of("HOME", "DJL_CACHE_DIR", "ENGINE_CACHE_DIR", "DJL_OFFLINE"));
    Process process = builder.start();
    boolean ended = process.waitFor(60, TimeUnit.SECONDS);
    process.destroyForcibly();
    List<String> lines = Files.readAllLines(output, StandardCharsets.UTF_8);
    assertThat(ended).as("%s", lines).isTrue();
    assertThat(process.exitValue()).as("%s", lines).isZero();
    return lines;
  }
}
