package dev.tacho.engine.model;

import dev.tacho.engine.kernel.Implementation;
import dev.tacho.engine.kernel.Kernels;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.params.provider.Arguments;

/** The kernels that every test of a model runs with: those that the kernels' own contract tests have. */
final class TestKernels {
  private TestKernels() {}

  /** The plain Java ones, for tests that the choice of kernels does not touch. */
  static Kernels scalar() {
    return Implementation.SCALAR.open();
  }

  /** All that this machine can run, named by what exactly they are. */
  static List<Named<Kernels>> all() {
    return Implementation.available()
        .map(Implementation::open)
        .map(kernels -> Named.of(kernels.description(), kernels))
        .toList();
  }

  /** All of them with each of some other arguments. */
  static Stream<Arguments> with(Object... arguments) {
    return all().stream().flatMap(kernels -> Stream.of(arguments).map(argument -> Arguments.of(kernels, argument)));
  }
}
