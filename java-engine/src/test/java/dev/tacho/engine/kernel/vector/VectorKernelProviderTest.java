package dev.tacho.engine.kernel.vector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.kernel.KernelProvider.Found;
import dev.tacho.engine.kernel.KernelProvider.Missing;
import dev.tacho.engine.kernel.KernelProvider.Ready;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** When the Vector API kernels are offered; what other flags would say is asked of JVMs started with them. */
class VectorKernelProviderTest {
  /** What a JVM with given flags finds. */
  public static final class Probe {
    private Probe() {}

    /** Prints "ready", the caution and the description, or "missing" and the reason. */
    public static void main(String[] arguments) {
      switch (new VectorKernelProvider().find()) {
        case Ready ready -> System.out.println("ready " + ready.caution() + "|" + ready.kernels().description());
        case Missing missing -> System.out.println("missing " + missing.reason());
      }
    }
  }

  private static String probe(String... flags) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(flags));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), Probe.class.getName()));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    return output.lines().filter(line -> !line.startsWith("WARNING")).reduce((a, b) -> b).orElseThrow();
  }

  private static String[] vectors(String flag) {
    return new String[] {"--add-modules", "jdk.incubator.vector", flag};
  }

  @Test
  void hereTheyAreReady() {
    Found found = new VectorKernelProvider().find();
    assertThat(found).isInstanceOf(Ready.class);
    assertThat(((Ready) found).kernels().description()).matches("vector (128|256|512) bit");
  }

  @Test
  void withoutTheModuleTheyAreMissingAndNoClassOfItIsTouched() throws Exception {
    assertThat(probe())
        .isEqualTo(
            "missing the module jdk.incubator.vector is not there: start with --add-modules jdk.incubator.vector");
  }

  @Test
  void userCase22WhereVectorsAreNotCompiledTheyAreMissing() throws Exception {
    assertThat(probe(vectors("-Xint"))).startsWith("missing this JVM does not compile vectors (interpreted mode");
    assertThat(probe(vectors("-XX:TieredStopAtLevel=1")))
        .startsWith("missing this JVM does not compile vectors (mixed mode, emulated-client");
    assertThat(probe(vectors("-XX:-UseFMA"))).startsWith("missing this CPU, or this JVM by its flags, has no fused");
  }

  @Test
  void userCase22SmallVectorsAreCautioned() throws Exception {
    assertThat(probe(vectors("-XX:MaxVectorSize=16")))
        .isEqualTo("ready vectors have only 128 bits on this CPU or by JVM flags|vector 128 bit");
    assertThat(probe(vectors("-XX:MaxVectorSize=32"))).isEqualTo("ready |vector 256 bit");
  }
}
