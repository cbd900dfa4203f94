package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.util.Base64;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Block formats as ggml makes and reads them (quants.json.gz, made with the real code): every provider gives the same
 * floats to the bit, signs of zero apart, and dot products within 1e-5 of the sum of the absolute products.
 */
@ParameterizedClass(name = "{0}")
@MethodSource("dev.tacho.engine.kernel.Implementation#available")
class QuantOracleTest {
  private final Implementation implementation;

  QuantOracleTest(Implementation implementation) {
    this.implementation = implementation;
  }

  /** One case of one type, with the activations of its length. */
  record Case(
      DType dtype,
      String name,
      int n,
      MemorySegment bytes,
      MemorySegment floats,
      MemorySegment activations,
      double dot,
      double size) {
    @Override
    public String toString() {
      return dtype + " " + name;
    }
  }

  static Stream<Case> cases() throws IOException {
    try (InputStream in = QuantOracleTest.class.getResourceAsStream("quants.json.gz")) {
      assertThat(in).isNotNull();
      JsonNode root = new ObjectMapper().readTree(new GZIPInputStream(in));
      Stream.Builder<Case> cases = Stream.builder();
      for (DType dtype : DType.values()) {
        JsonNode type = root.path("types").path(dtype.name());
        assertThat(type.path("ggml_type_id").asInt()).isEqualTo(dtype.id());
        assertThat(type.path("block_elements").asInt()).isEqualTo(dtype.blockElements());
        assertThat(type.path("block_bytes").asInt()).isEqualTo(dtype.blockBytes());
        for (JsonNode node : type.path("cases")) {
          int n = node.path("n").asInt();
          cases.add(
              new Case(
                  dtype,
                  node.path("case").asText(),
                  n,
                  decode(node.path("bytes")),
                  decode(node.path("f32")),
                  decode(root.path("activations").path("" + n).path("y_f32")),
                  node.path("dot_f64").asDouble(),
                  node.path("dot_abs_f64").asDouble()));
        }
      }
      return cases.build();
    }
  }

  private static MemorySegment decode(JsonNode base64) {
    return MemorySegment.ofArray(Base64.getDecoder().decode(base64.asText()));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("cases")
  void rowsAndDotProductsAreThoseOfGgml(Case quants) {
    try (KernelBench bench = new KernelBench(implementation)) {
      int n = quants.n();
      MemorySegment source = bench.arena.allocate(quants.bytes().byteSize() + 1).asSlice(1);
      source.copyFrom(quants.bytes());
      Weight weight = bench.pack(bench.kernels, quants.dtype(), 1, n, source, bench.worker);
      Matrix row = bench.matrix(1, n, n);
      bench.kernels.embeddingLookup(
          weight, bench.arena.allocate(JAVA_INT, 1), 1, row.segment(), n, 0, 1, bench.worker);
      MemorySegment expected = quants.floats();
      for (int j = 0; j < n; j++) {
        float value = expected.get(JAVA_FLOAT_UNALIGNED, 4L * j);
        if (row.get(0, j) != value) {
          throw new AssertionError(quants + ": element " + j + " is " + row.get(0, j) + ", expected " + value);
        }
      }
      Matrix x = bench.matrix(1, n, n);
      x.segment().copyFrom(quants.activations());
      Matrix y = bench.matrix(1, 1, 1);
      bench.matmul(bench.kernels, weight, x, y, bench.worker);
      if (quants.size() < 1e38) {
        // A float's rounding, or that of the activations: to 8 bits of the largest of 32, to 8 bits each.
        ActivationFormat format = bench.kernels.activationFormat(quants.dtype());
        double tolerance = format == ActivationFormat.FLOAT32 ? 1e-5 : 2e-2;
        double denormal = format == ActivationFormat.BFLOAT16 ? n * (double) Float.MIN_NORMAL : 0;
        assertThat(Math.abs(y.get(0, 0) - quants.dot()))
            .as("%s against %s", y.get(0, 0), quants.dot())
            .isLessThanOrEqualTo(tolerance * quants.size() + denormal);
      }
    }
  }
}
