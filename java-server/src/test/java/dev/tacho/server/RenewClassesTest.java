package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The jars that scripts/aot makes of those whose class files are too old for the ahead-of-time cache. */
class RenewClassesTest {
  private static final int JAVA_5 = 49;
  private static final int JAVA_8 = 52;

  @TempDir Path directory;

  private static Path jarOf(Class<?> type) throws Exception {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
  }

  private static List<String> classes(ZipFile jar) {
    return jar.stream()
        .map(ZipEntry::getName)
        .filter(name -> name.endsWith(".class") && !name.contains("module-info"))
        .toList();
  }

  private static int majorVersion(ZipFile jar, String name) throws IOException {
    try (DataInputStream in = new DataInputStream(jar.getInputStream(jar.getEntry(name)))) {
      in.skipNBytes(6);
      return in.readUnsignedShort();
    }
  }

  private void renew(Path from, Path to) throws Exception {
    Path source = BundledModel.ROOT.resolve("scripts/RenewClasses.java");
    String java = Path.of(System.getProperty("java.home"), "bin/java").toString();
    Path output = directory.resolve("output");
    Process process =
        new ProcessBuilder(java, source.toString(), from.toString(), to.toString())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    boolean ended = process.waitFor(60, TimeUnit.SECONDS);
    process.destroyForcibly();
    String said = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(ended).as(said).isTrue();
    assertThat(process.exitValue()).as(said).isZero();
  }

  @Test
  void renewedClassesPassTheNewVerifierAndAreAllThere() throws Exception {
    Path from = Files.createDirectories(directory.resolve("from"));
    Path old = Files.copy(jarOf(CommandLine.class), from.resolve("old.jar"));
    Files.copy(jarOf(Test.class), from.resolve("new.jar"));
    Path to = directory.resolve("to");
    renew(from, to);
    try (Stream<Path> made = Files.list(to)) {
      assertThat(made).as("jars that are new enough are left out").containsExactly(to.resolve("old.jar"));
    }
    try (ZipFile before = new ZipFile(old.toFile());
        ZipFile after = new ZipFile(to.resolve("old.jar").toFile());
        URLClassLoader loader =
            new URLClassLoader(
                new URL[] {to.resolve("old.jar").toUri().toURL()}, ClassLoader.getPlatformClassLoader())) {
      assertThat(majorVersion(before, "picocli/CommandLine.class")).isEqualTo(JAVA_5);
      assertThat(after.stream().map(ZipEntry::getName)).containsExactlyElementsOf(
          before.stream().map(ZipEntry::getName).toList());
      for (String name : classes(after)) {
        assertThat(majorVersion(after, name)).as(name).isEqualTo(JAVA_8);
        // Initialising a class verifies it.
        Class<?> type = Class.forName(name.substring(0, name.length() - 6).replace('/', '.'), true, loader);
        assertThat(type.getClassLoader()).as(name).isEqualTo(loader);
      }
    }
  }
}
