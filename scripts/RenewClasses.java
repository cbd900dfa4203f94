import java.io.IOException;
import java.io.OutputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassFile.ClassHierarchyResolverOption;
import java.lang.classfile.ClassFile.StackMapsOption;
import java.lang.classfile.ClassFileVersion;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassModel;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.MethodModel;
import java.lang.classfile.MethodTransform;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Copies jars in which class files are older than those of Java 6, with class files of Java 8: the JDK's ahead-of-time
 * cache takes no older ones. The code stays as it is; what newer class files have beside it, stack maps, is added.
 * Usage: java RenewClasses.java FROM TO, two directories.
 */
final class RenewClasses {
  private static final ClassTransform RENEWAL =
      (builder, element) -> {
        switch (element) {
          case ClassFileVersion _ -> builder.withVersion(ClassFile.JAVA_8_VERSION, 0);
          // Code that is not read instruction by instruction is copied, without stack maps.
          case MethodModel method ->
              builder.transformMethod(method, MethodTransform.transformingCode((code, part) -> code.with(part)));
          default -> builder.with(element);
        }
      };

  private RenewClasses() {}

  public static void main(String[] words) throws IOException {
    List<Path> jars;
    try (Stream<Path> files = Files.list(Path.of(words[0]))) {
      jars = files.filter(file -> file.toString().endsWith(".jar")).sorted().toList();
    }
    Files.createDirectories(Path.of(words[1]));
    URL[] all = new URL[jars.size()];
    for (int i = 0; i < all.length; i++) {
      all[i] = jars.get(i).toUri().toURL();
    }
    try (URLClassLoader loader = new URLClassLoader(all)) {
      for (Path jar : jars) {
        if (isOld(jar)) {
          renewOrLeave(jar, loader, Path.of(words[1]).resolve(jar.getFileName()));
        }
      }
    }
  }

  /** A jar that cannot be renewed is left out: its classes start as slowly as before. */
  private static void renewOrLeave(Path jar, ClassLoader loader, Path to) throws IOException {
    Path unfinished = to.resolveSibling(to.getFileName() + ".new");
    try {
      renew(jar, loader, unfinished);
      Files.move(unfinished, to);
    } catch (RuntimeException e) {
      Files.deleteIfExists(unfinished);
      System.err.println(jar + " is not renewed: " + e);
    }
  }

  private static boolean isOld(Path jar) throws IOException {
    try (ZipFile from = new ZipFile(jar.toFile())) {
      for (ZipEntry entry : from.stream().map(ZipEntry.class::cast).toList()) {
        if (isClass(entry) && isOld(from.getInputStream(entry).readNBytes(8))) {
          return true;
        }
      }
    }
    return false;
  }

  private static boolean isClass(ZipEntry entry) {
    return entry.getName().endsWith(".class");
  }

  /** By the major version, bytes 6 and 7 of a class file. */
  private static boolean isOld(byte[] classFile) {
    return classFile.length >= 8 && ((classFile[6] & 0xff) << 8 | classFile[7] & 0xff) < ClassFile.JAVA_6_VERSION;
  }

  private static void renew(Path jar, ClassLoader loader, Path to) throws IOException {
    try (ZipFile from = new ZipFile(jar.toFile());
        OutputStream file = Files.newOutputStream(to);
        ZipOutputStream out = new ZipOutputStream(file)) {
      ClassFile classFiles =
          ClassFile.of(
              StackMapsOption.GENERATE_STACK_MAPS,
              ClassHierarchyResolverOption.of(ClassHierarchyResolver.ofResourceParsing(loader).cached()));
      for (ZipEntry entry : from.stream().map(ZipEntry.class::cast).toList()) {
        byte[] content = from.getInputStream(entry).readAllBytes();
        if (isClass(entry) && isOld(content)) {
          ClassModel model = classFiles.parse(content);
          content = classFiles.transformClass(model, RENEWAL);
        }
        ZipEntry copy = new ZipEntry(entry.getName());
        copy.setTime(entry.getTime());
        out.putNextEntry(copy);
        out.write(content);
      }
    }
  }
}
