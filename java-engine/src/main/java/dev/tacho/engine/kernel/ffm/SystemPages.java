package dev.tacho.engine.kernel.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.UnsupportedException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/**
 * Gives pages of off-heap memory back to the system while the memory stays allocated: addresses that kernels keep stay
 * valid. Who touches such a page again gets a new one, filled with zeros, or with the file's contents where a file is
 * mapped. Linux only. Any thread.
 */
public final class SystemPages {
  /** {@code MADV_DONTNEED} of sys/mman.h, the same on every Linux; only there does it drop the contents at once. */
  private static final int DONT_NEED = 4;

  private SystemPages() {}

  /** The two functions of the C library, bound when first needed. */
  private static final class Functions {
    static final @Nullable MethodHandle ADVISE =
        bind("madvise", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));

    static final long PAGE_BYTES = pageBytes();

    private static @Nullable MethodHandle bind(String name, FunctionDescriptor type) {
      Linker linker = Linker.nativeLinker();
      return linker.defaultLookup().find(name).map(address -> linker.downcallHandle(address, type)).orElse(null);
    }

    private static long pageBytes() {
      MethodHandle ask = bind("getpagesize", FunctionDescriptor.of(JAVA_INT));
      try {
        return ask == null ? 0 : (int) ask.invokeExact();
      } catch (Throwable e) {
        throw new IllegalStateException("getpagesize", e);
      }
    }
  }

  /**
   * Says whether {@link #discard} can work here.
   *
   * @throws UnsupportedException if it cannot, with the reason
   */
  public static void requireSupport() {
    String system = System.getProperty("os.name", "");
    if (!system.equals("Linux")) {
      throw new UnsupportedException("sleep", "giving memory back to the system needs Linux, this is " + system);
    }
    if (Functions.ADVISE == null || Functions.PAGE_BYTES <= 0) {
      throw new UnsupportedException("sleep", "the C library of this system has no madvise or getpagesize");
    }
  }

  /**
   * Lets go of the whole pages inside a segment of a mapped file: they leave the memory of the process, and come back
   * from the file if they are read again. Does nothing where the system cannot.
   */
  public static void release(MemorySegment mapped) {
    if (System.getProperty("os.name", "").equals("Linux") && Functions.ADVISE != null && Functions.PAGE_BYTES > 0) {
      advise(mapped);
    }
  }

  /**
   * Drops the contents of the whole pages inside a segment. What lies on a page that the segment shares with others
   * stays.
   *
   * @param memory anonymous off-heap memory that nobody uses at this moment
   * @throws UnsupportedException as {@link #requireSupport}
   * @throws IllegalStateException if the segment is closed, or the system refuses
   */
  public static void discard(MemorySegment memory) {
    requireSupport();
    if (advise(memory) != 0) {
      throw new IllegalStateException(
          "the system does not take " + memory.byteSize() + " bytes of memory back (locked pages?)");
    }
  }

  /** The status of madvise; 0 if there is no whole page. */
  private static int advise(MemorySegment memory) {
    long page = Functions.PAGE_BYTES;
    long before = Math.floorMod(-memory.address(), page);
    long bytes = (memory.byteSize() - before) / page * page;
    MethodHandle advise = Functions.ADVISE;
    if (bytes <= 0 || advise == null) {
      return 0;
    }
    try {
      return (int) advise.invokeExact(memory.asSlice(before, bytes), bytes, DONT_NEED);
    } catch (RuntimeException e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("madvise", e);
    }
  }
}
