package dev.tacho.engine.token;

import ai.djl.huggingface.tokenizers.jni.LibUtils;
import ai.djl.huggingface.tokenizers.jni.TokenizersLibrary;
import dev.tacho.engine.UnsupportedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import org.jspecify.annotations.Nullable;

/**
 * Loads the native tokenizers library once: without network, without telemetry, and from a private directory where the
 * home directory can't hold its cache. The binding takes its settings from system properties while its class is
 * initialised; what the process has set itself is left as it is, and what is only for loading is taken back.
 */
final class TokenizersLibraryLoader {
  private static final String NO_TELEMETRY = "OPT_OUT_TRACKING";
  private static final String OFFLINE = "ai.djl.offline";
  private static final String ENGINE_CACHE = "ENGINE_CACHE_DIR";
  private static final String CACHE = "DJL_CACHE_DIR";

  private static @Nullable TokenizersLibrary loaded;

  private TokenizersLibraryLoader() {}

  /**
   * The library.
   *
   * @throws UnsupportedException if there is none for this platform, or it cannot be unpacked; says why
   */
  static synchronized TokenizersLibrary load() {
    TokenizersLibrary library = loaded;
    if (library == null) {
      library = loadFirst();
      loaded = library;
    }
    return library;
  }

  private static TokenizersLibrary loadFirst() {
    Path cache =
        isSet(ENGINE_CACHE) || isSet(CACHE) || isHomeWritable() ? null : privateDirectory();
    setIfAbsent(NO_TELEMETRY);
    boolean offlineSet = setIfAbsent(OFFLINE);
    if (cache != null) {
      System.setProperty(ENGINE_CACHE, cache.toString());
    }
    try {
      LibUtils.checkStatus();
      return TokenizersLibrary.LIB;
    } catch (LinkageError | RuntimeException e) {
      Throwable reason = e.getCause() == null ? e : e.getCause();
      UnsupportedException unsupported =
          new UnsupportedException(
              "the native tokenizers library on "
                  + System.getProperty("os.name")
                  + " "
                  + System.getProperty("os.arch"),
              String.valueOf(reason.getMessage()));
      unsupported.initCause(e);
      throw unsupported;
    } finally {
      if (offlineSet) {
        System.clearProperty(OFFLINE);
      }
      if (cache != null) {
        System.clearProperty(ENGINE_CACHE);
        delete(cache);
      }
    }
  }

  private static boolean isSet(String name) {
    return System.getenv(name) != null || System.getProperty(name) != null;
  }

  private static boolean setIfAbsent(String property) {
    if (System.getProperty(property) != null) {
      return false;
    }
    System.setProperty(property, "true");
    return true;
  }

  private static boolean isHomeWritable() {
    Path home = Path.of(System.getProperty("user.home", ""));
    Path cache = home.resolve(".djl.ai");
    return Files.isWritable(Files.exists(cache) ? cache : home);
  }

  /** A directory of this process alone: a fixed one below a shared temporary directory could be filled by others. */
  private static Path privateDirectory() {
    try {
      return Files.createTempDirectory("tacho-tokenizers");
    } catch (IOException e) {
      UnsupportedException unsupported =
          new UnsupportedException(
              "the native tokenizers library",
              "neither home nor temporary directory can be written: " + e);
      unsupported.initCause(e);
      throw unsupported;
    }
  }

  /** A loaded library needs its file no longer; where the system holds on to it, it stays. */
  private static void delete(Path directory) {
    try (var files = Files.walk(directory)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    } catch (IOException e) {
      directory.toFile().deleteOnExit();
    }
  }
}
