package dev.tacho.engine.kernel.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.kernel.KernelProvider;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where the library is looked for, and what is said when it cannot be had. */
class NativeLibraryTest {
  @TempDir Path dir;

  private NativeLibrary.Search search(@Nullable String path) {
    return new NativeLibrary.Search("Linux", "amd64", false, path, dir, NativeLibrary.class.getClassLoader());
  }

  private static String reason(NativeLibrary.Search search) {
    try {
      NativeLibrary.load(search);
    } catch (LibraryUnavailableException e) {
      return e.reason();
    }
    throw new AssertionError("loaded");
  }

  @Test
  void theResourceIsLoadedAndItsFileIsGone() throws Exception {
    NativeLibrary.load(search(null));
    try (Stream<Path> left = Files.list(dir)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void whatIsPreloadedIsFoundLikeAnythingElse() {
    NativeKernelProvider.preload();
    NativeKernelProvider.preload();
    assertThat(new NativeKernelProvider("").find()).isInstanceOf(KernelProvider.Ready.class);
  }

  @Test
  void aNamedFileIsLoaded() throws Exception {
    Path file = dir.resolve("own.so");
    try (InputStream in = NativeLibrary.class.getClassLoader().getResourceAsStream(NativeLibrary.RESOURCE)) {
      assertThat(in).isNotNull();
      Files.copy(in, file);
    }
    NativeLibrary.load(search(file.toString()));
    assertThat(file).exists();
  }

  @Test
  void userCase23ANamedFileThatIsMissingIsNotReplacedByTheResource() {
    Path file = dir.resolve("missing.so");
    assertThat(reason(search(file.toString()))).isEqualTo(file + " (-Dtacho.native.path): no such file");
  }

  @Test
  void userCase23ANamedFileThatIsNoLibraryIsNamedWithTheLoadersWords() throws IOException {
    Path file = Files.writeString(dir.resolve("text.so"), "not a library at all");
    assertThat(reason(search(file.toString())))
        .startsWith(file + " (-Dtacho.native.path): ")
        .contains("file too short");
  }

  @Test
  void userCase23ADirectoryThatCannotBeWrittenIsNamed() {
    Path gone = dir.resolve("gone");
    NativeLibrary.Search search =
        new NativeLibrary.Search("Linux", "amd64", false, null, gone, NativeLibrary.class.getClassLoader());
    assertThat(reason(search))
        .startsWith(gone + " (unpacked from the resource META-INF/native/linux-x86_64/libtacho.so): ")
        .contains("NoSuchFileException");
  }

  @Test
  void userCase23AResourceThatIsMissingIsNamedWithTheJarThatHasIt() throws IOException {
    try (URLClassLoader empty = new URLClassLoader(new URL[0], null)) {
      NativeLibrary.Search search = new NativeLibrary.Search("Linux", "amd64", false, null, dir, empty);
      assertThat(reason(search))
          .isEqualTo(
              "resource META-INF/native/linux-x86_64/libtacho.so: not on the class path (tacho-native with classifier"
                  + " linux-x86_64), and -Dtacho.native.path is not set");
    }
  }

  @Test
  void userCase23AResourceThatIsNoLibraryNamesTheUnpackedFileAndLeavesNone() throws IOException {
    Path jar = dir.resolve("jar");
    Files.createDirectories(jar.resolve(NativeLibrary.RESOURCE).getParent());
    Files.writeString(jar.resolve(NativeLibrary.RESOURCE), "no library");
    Path work = Files.createDirectory(dir.resolve("work"));
    try (URLClassLoader broken = new URLClassLoader(new URL[] {jar.toUri().toURL()}, null)) {
      assertThat(reason(new NativeLibrary.Search("Linux", "amd64", false, null, work, broken)))
          .startsWith(work + "/libtacho-")
          .contains("unpacked from the resource");
    }
    try (Stream<Path> left = Files.list(work)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void aFileSystemThatForbidsExecutionGetsAHint() {
    String words = "/t/l.so: failed to map segment from shared object: Operation not permitted";
    assertThat(NativeLibrary.hint(words, Path.of("/t/l.so")))
        .isEqualTo(
            ": the file system of /t forbids execution (noexec), set -Dtacho.native.workdir to a directory that allows"
                + " it");
    assertThat(NativeLibrary.hint("version `GLIBC_2.38' not found", Path.of("/t/l.so")))
        .isEqualTo(": the C library of this system is too old");
    assertThat(NativeLibrary.hint(null, Path.of("/t/l.so"))).isEmpty();
  }

  @Test
  void otherPlatformsAreRefusedWithWords() {
    ClassLoader loader = NativeLibrary.class.getClassLoader();
    assertThat(reason(new NativeLibrary.Search("Mac OS X", "aarch64", false, null, dir, loader)))
        .isEqualTo("the native library is for Linux on x86-64, this is Mac OS X on aarch64");
    assertThat(reason(new NativeLibrary.Search("Linux", "aarch64", false, null, dir, loader)))
        .isEqualTo("the native library is for Linux on x86-64, this is Linux on aarch64");
    assertThat(reason(new NativeLibrary.Search("Linux", "amd64", true, null, dir, loader)))
        .isEqualTo("the native library needs glibc, this JVM runs on musl (Alpine): use a glibc-based JDK image");
  }

  @Test
  void anotherAbiVersionIsRefused() {
    assertThatThrownBy(() -> NativeLibrary.checkVersion(NativeAbi.ABI_VERSION + 1))
        .hasMessage(
            "the native library has ABI version 4, this build needs 3: use a library of the same release");
  }

  @Test
  void theDescriptionNamesTheInstructionSetAndTheBuild() {
    KernelProvider.Found found = new NativeKernelProvider("scalar").find();
    assertThat(found).isInstanceOf(KernelProvider.Ready.class);
    assertThat(((KernelProvider.Ready) found).kernels().description())
        .startsWith("native scalar (tacho ")
        .contains("isa: scalar avx2 avx512 avx512_vnni avx512_bf16 amx");
  }

  @Test
  void theLimitOnInstructionSetsHolds() {
    for (String word : List.of("scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx", "")) {
      assertThat(new NativeKernelProvider(word).find())
          .isInstanceOfSatisfying(
              KernelProvider.Ready.class,
              ready -> {
                NativeKernels kernels = (NativeKernels) ready.kernels();
                if (!word.isEmpty()) {
                  assertThat(kernels.instructionSet())
                      .isLessThanOrEqualTo(InstructionSet.valueOf(word.toUpperCase(Locale.ROOT)));
                }
              });
    }
  }

  @Test
  void anUnknownInstructionSetIsAnErrorThatNamesTheKnownOnes() {
    assertThatThrownBy(() -> new NativeKernelProvider("avx1024").find())
        .isInstanceOf(UnsupportedException.class)
        .hasMessage(
            "TACHO_MAX_ISA=avx1024 is not supported: it must be scalar, avx2, avx512, avx512_vnni, avx512_bf16 or "
                + "amx, or not set");
  }
}
