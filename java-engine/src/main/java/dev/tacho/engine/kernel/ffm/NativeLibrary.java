package dev.tacho.engine.kernel.ffm;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Finds libtacho.so and loads it into this class loader, once.
 *
 * <ol>
 *   <li>{@code -Dtacho.native.path=FILE}: that file or nothing.
 *   <li>Otherwise the resource {@code META-INF/native/linux-x86_64/libtacho.so}, copied to a file that only the owner
 *       may use, in {@code -Dtacho.native.workdir} or the JVM's temporary directory; loaded, and deleted at once.
 * </ol>
 *
 * <p>The library lives as long as the class loader. A failure leaves nothing loaded and no file behind; its message
 * names each path and cause.
 */
final class NativeLibrary {
  static final String PATH_PROPERTY = "tacho.native.path";
  static final String WORKDIR_PROPERTY = "tacho.native.workdir";
  static final String RESOURCE = "META-INF/native/linux-x86_64/libtacho.so";

  /** The path that musl gives its loader on x86-64; every program for it names this file. */
  private static final Path MUSL_LOADER = Path.of("/lib/ld-musl-x86_64.so.1");

  private static boolean loaded;

  private NativeLibrary() {}

  /**
   * Where to look, and for whom.
   *
   * @param os the property os.name
   * @param arch the property os.arch
   * @param musl whether the JVM runs on musl instead of glibc
   * @param path the file that must be loaded, or null
   * @param workdir where the resource is unpacked
   * @param resources finds the resource
   */
  record Search(String os, String arch, boolean musl, @Nullable String path, Path workdir, ClassLoader resources) {
    /** By the system properties of this JVM. */
    static Search here() {
      String workdir = System.getProperty(WORKDIR_PROPERTY, System.getProperty("java.io.tmpdir", "/tmp"));
      return new Search(
          System.getProperty("os.name", ""),
          System.getProperty("os.arch", ""),
          runsOnMusl(),
          System.getProperty(PATH_PROPERTY),
          Path.of(workdir),
          NativeLibrary.class.getClassLoader());
    }
  }

  /** Loads the library unless that was done, and compares its ABI version with ours. */
  static synchronized void ensureLoaded() throws LibraryUnavailableException {
    if (!loaded) {
      load(Search.here());
      checkVersion();
      loaded = true;
    }
  }

  private static void checkVersion() throws LibraryUnavailableException {
    int version;
    try {
      version = (int) NativeAbi.bind("tacho_abi_version").invokeExact();
    } catch (Throwable e) {
      throw unavailable("the loaded library is not Tacho's: " + e.getMessage(), e);
    }
    checkVersion(version);
  }

  /** Compares a library's version with the one that these bindings were written for. */
  static void checkVersion(int version) throws LibraryUnavailableException {
    if (version != NativeAbi.ABI_VERSION) {
      throw new LibraryUnavailableException(
          "the native library has ABI version " + version + ", this build needs " + NativeAbi.ABI_VERSION
              + ": use a library of the same release");
    }
  }

  /** One search, whatever was loaded before. */
  static void load(Search search) throws LibraryUnavailableException {
    if (!search.os().equals("Linux") || !(search.arch().equals("amd64") || search.arch().equals("x86_64"))) {
      throw new LibraryUnavailableException(
          "the native library is for Linux on x86-64, this is " + search.os() + " on " + search.arch());
    }
    if (search.musl()) {
      throw new LibraryUnavailableException(
          "the native library needs glibc, this JVM runs on musl (Alpine): use a glibc-based JDK image");
    }
    if (search.path() != null) {
      loadFile(Path.of(search.path()).toAbsolutePath(), "-D" + PATH_PROPERTY);
    } else {
      loadResource(search);
    }
  }

  private static void loadFile(Path file, String origin) throws LibraryUnavailableException {
    if (!Files.isRegularFile(file)) {
      throw new LibraryUnavailableException(file + " (" + origin + "): no such file");
    }
    try {
      System.load(file.toString());
    } catch (UnsatisfiedLinkError e) {
      throw unavailable(file + " (" + origin + "): " + e.getMessage() + hint(e.getMessage(), file), e);
    } catch (IllegalCallerException e) {
      String advice = "start with --enable-native-access=ALL-UNNAMED: ";
      throw unavailable(file + " (" + origin + "): " + advice + e.getMessage(), e);
    }
  }

  private static void loadResource(Search search) throws LibraryUnavailableException {
    String origin = "unpacked from the resource " + RESOURCE;
    try (InputStream resource = search.resources().getResourceAsStream(RESOURCE)) {
      if (resource == null) {
        throw new LibraryUnavailableException(
            "resource " + RESOURCE + ": not on the class path (tacho-native with classifier linux-x86_64), and -D"
                + PATH_PROPERTY + " is not set");
      }
      Path file = createFile(search.workdir());
      // Where the JVM ends before this method does.
      file.toFile().deleteOnExit();
      try {
        try (OutputStream out = Files.newOutputStream(file)) {
          resource.transferTo(out);
        }
        loadFile(file, origin);
      } finally {
        Files.deleteIfExists(file);
      }
    } catch (IOException e) {
      throw unavailable(search.workdir() + " (" + origin + "): " + e, e);
    }
  }

  private static Path createFile(Path workdir) throws IOException {
    return Files.createTempFile(
        workdir,
        "libtacho-",
        ".so",
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
  }

  private static LibraryUnavailableException unavailable(String message, Throwable cause) {
    LibraryUnavailableException exception = new LibraryUnavailableException(message);
    exception.initCause(cause);
    return exception;
  }

  /** What to do about the two faults that the loader's own words do not explain. */
  static String hint(@Nullable String message, Path file) {
    if (message != null && message.contains("failed to map segment from shared object")) {
      return ": the file system of " + file.getParent() + " forbids execution (noexec), set -D" + WORKDIR_PROPERTY
          + " to a directory that allows it";
    }
    if (message != null && message.contains("GLIBC_")) {
      return ": the C library of this system is too old";
    }
    return "";
  }

  /** Where musl's loader is not installed the JVM does not run on it, and the long list of mappings is not read. */
  private static boolean runsOnMusl() {
    if (!Files.exists(MUSL_LOADER)) {
      return false;
    }
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      return maps.anyMatch(line -> line.contains("/ld-musl-"));
    } catch (IOException e) {
      return false;
    }
  }
}
