package dev.tacho.engine.format;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.tacho.engine.EngineException;
import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.kernel.DType;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Right files are read to the bit; of wrong ones each is refused with the field, the place and the limit. */
class GgufFileTest {
  private static final int F32 = 0;
  private static final int Q8_0 = 8;
  private static final int Q5_K = 13;

  @TempDir Path directory;

  private static GgufWriter sample() {
    return new GgufWriter()
        .string("general.architecture", "llama")
        .uint32("llama.block_count", 7)
        .float32("llama.rope.freq_base", 10_000.5f)
        .bool("tokenizer.ggml.add_bos_token", true)
        .raw("wide", 10, GgufWriter.little(8).putLong(1L << 40).array())
        .raw("signed", 1, new byte[] {-3})
        .raw("unsigned", 0, new byte[] {-3})
        .raw("double", 12, GgufWriter.little(8).putDouble(0.1).array())
        .strings("tokenizer.ggml.tokens", List.of("", "▁a", "😀", "\u0000x"))
        .floats("tokenizer.ggml.scores", 0f, -1.5f, -2f, Float.NEGATIVE_INFINITY)
        .integers("tokenizer.ggml.token_type", 2, 3, 6, 1)
        .tensor("first", F32, bytes(24, 1), 3, 2)
        .tensor("second", Q8_0, bytes(68, 2), 32, 2);
  }

  private static byte[] bytes(int length, int value) {
    byte[] bytes = new byte[length];
    Arrays.fill(bytes, (byte) value);
    return bytes;
  }

  private Path write(byte[] content) {
    Path file = directory.resolve("model.gguf");
    try {
      return Files.write(file, content);
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private GgufFile open(GgufWriter writer) {
    return GgufFile.open(write(writer.toByteArray()));
  }

  private ModelFormatException refuse(GgufWriter writer) {
    return refuse(writer.toByteArray());
  }

  private ModelFormatException refuse(byte[] content) {
    Path file = write(content);
    ModelFormatException refusal =
        catchThrowableOfType(ModelFormatException.class, () -> GgufFile.open(file).close());
    assertThat(refusal).isNotNull();
    assertThat(refusal.file()).isEqualTo(file.toString());
    return refusal;
  }

  /** The file is sparse: it takes no room. */
  @ParameterizedTest(name = "{0} bytes")
  @ValueSource(longs = {(1L << 30) + 1, (1L << 31) - 1, 1L << 31, (1L << 32) + 5})
  void aFileMayBeLargerThanAnyArray(long bytes) throws IOException {
    Path path = write(sample().toByteArray());
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.allocate(1), bytes - 1);
    }
    try (GgufFile file = GgufFile.open(path)) {
      assertThat(file.strings("tokenizer.ggml.tokens")).isNotEmpty();
    }
  }

  @ParameterizedTest(name = "version {0}")
  @ValueSource(ints = {2, 3})
  void readsEveryKindOfValue(int version) {
    try (GgufFile file = open(sample().version(version))) {
      assertThat(file.version()).isEqualTo(version);
      assertThat(file.keys()).startsWith("general.architecture", "llama.block_count").hasSize(11);
      assertThat(file.string("general.architecture")).isEqualTo("llama");
      assertThat(file.string("absent", "none")).isEqualTo("none");
      assertThat(file.integer("llama.block_count")).isEqualTo(7);
      assertThat(file.integer("wide")).isEqualTo(1L << 40);
      assertThat(file.integer("signed")).isEqualTo(-3);
      assertThat(file.integer("unsigned")).isEqualTo(253);
      assertThat(file.integer("absent", -9)).isEqualTo(-9);
      assertThat(file.number("llama.rope.freq_base")).isEqualTo(10_000.5);
      assertThat(file.number("double")).isEqualTo(0.1);
      assertThat(file.number("signed")).isEqualTo(-3);
      assertThat(file.bool("tokenizer.ggml.add_bos_token", false)).isTrue();
      assertThat(file.bool("absent", true)).isTrue();
      assertThat(file.strings("tokenizer.ggml.tokens")).containsExactly("", "▁a", "😀", "\u0000x");
      assertThat(file.floats("tokenizer.ggml.scores"))
          .containsExactly(0f, -1.5f, -2f, Float.NEGATIVE_INFINITY);
      assertThat(file.integers("tokenizer.ggml.token_type")).containsExactly(2, 3, 6, 1);
      assertThat(file.isArray("tokenizer.ggml.tokens")).isTrue();
      assertThat(file.isArray("wide")).isFalse();
      assertThat(file.arrayLength("tokenizer.ggml.tokens")).isEqualTo(4);
    }
  }

  @Test
  void givesTensorsWithExactlyTheirBytes() {
    try (GgufFile file = open(sample())) {
      assertThat(file.tensors()).extracting(GgufTensor::name).containsExactly("first", "second");
      GgufTensor second = file.tensor("second");
      assertThat(second.shape()).containsExactly(32L, 2L);
      assertThat(second.elements()).isEqualTo(64);
      assertThat(second.bytes()).isEqualTo(68);
      assertThat(file.dtype(second)).isEqualTo(DType.Q8_0);
      assertThat(second.offset() % 32).isZero();
      MemorySegment data = file.data(second);
      assertThat(data.toArray(JAVA_BYTE)).isEqualTo(bytes(68, 2));
      assertThat(data.isReadOnly()).isTrue();
      assertThat(file.findTensor("third")).isEmpty();
      assertThatThrownBy(() -> file.tensor("third"))
          .isInstanceOf(ModelFormatException.class)
          .hasMessageContaining("tensor third");
    }
  }

  @Test
  void alignmentOfTheFileIsObeyed() {
    GgufWriter writer =
        new GgufWriter()
            .alignment(256)
            .tensor("a", F32, bytes(4, 1), 1)
            .tensor("b", F32, bytes(4, 2), 1);
    try (GgufFile file = open(writer)) {
      assertThat(file.tensor("b").offset() - file.tensor("a").offset()).isEqualTo(256);
      assertThat(file.data(file.tensor("b")).get(JAVA_BYTE, 0)).isEqualTo((byte) 2);
    }
  }

  @Test
  void typeWithoutKernelsIsReadAndNamedWhenAskedFor() {
    try (GgufFile file =
        open(new GgufWriter().tensor("blk.0.attn_q.weight", Q5_K, bytes(352, 1), 512))) {
      GgufTensor tensor = file.tensor("blk.0.attn_q.weight");
      assertThat(tensor.bytes()).isEqualTo(352);
      assertThatThrownBy(() -> file.dtype(tensor))
          .isInstanceOf(UnsupportedException.class)
          .hasMessageContaining("Q5_K (13) of blk.0.attn_q.weight in " + file.path())
          .hasMessageContaining("Q8_0");
    }
  }

  @Test
  void wrongTypeIsNamedWithBothTypes() {
    try (GgufFile file = open(sample())) {
      assertThatThrownBy(() -> file.integer("general.architecture"))
          .isInstanceOf(ModelFormatException.class)
          .hasMessageContaining("general.architecture: expected an integer, found string");
      assertThatThrownBy(() -> file.strings("tokenizer.ggml.scores"))
          .hasMessageContaining("an array of 4 float32");
      assertThatThrownBy(() -> file.string("tokenizer.ggml.tokens"))
          .hasMessageContaining("an array of 4 string");
      assertThatThrownBy(() -> file.integer("nothing")).hasMessageContaining("no such key");
      assertThatThrownBy(() -> file.bool("wide", true))
          .hasMessageContaining("expected a bool, found uint64");
      assertThatThrownBy(() -> file.number("tokenizer.ggml.add_bos_token"))
          .hasMessageContaining("found bool");
      assertThatThrownBy(() -> file.arrayLength("wide"))
          .hasMessageContaining("expected an array, found uint64");
    }
  }

  @Test
  void integersOutsideTheirRangeAreRefusedNotWrapped() {
    byte[] max = GgufWriter.little(8).putLong(-1).array();
    ByteArrayOutputStream array = GgufWriter.array(11, 1);
    array.writeBytes(GgufWriter.little(8).putLong(1L << 31).array());
    try (GgufFile file =
        open(new GgufWriter().raw("u64", 10, max).raw("list", 9, array.toByteArray()))) {
      assertThatThrownBy(() -> file.integer("u64"))
          .hasMessageContaining("found 18446744073709551615");
      assertThatThrownBy(() -> file.integers("list"))
          .hasMessageContaining("list element 0")
          .hasMessageContaining("2147483648");
    }
  }

  @Test
  void boolsAreZeroOrOneAndStringsAreUtf8() {
    byte[] latin1 = {2, 0, 0, 0, 0, 0, 0, 0, 'a', (byte) 0xe9};
    try (GgufFile file =
        open(new GgufWriter().raw("flag", 7, new byte[] {2}).raw("name", 8, latin1))) {
      assertThatThrownBy(() -> file.bool("flag", false))
          .hasMessageContaining("a bool, 0 or 1, found 2");
      assertThatThrownBy(() -> file.string("name"))
          .hasMessageContaining("expected UTF-8")
          .hasMessageContaining("byte 1 of the string");
    }
    byte[] replacement = {3, 0, 0, 0, 0, 0, 0, 0, (byte) 0xef, (byte) 0xbf, (byte) 0xbd};
    try (GgufFile file = open(new GgufWriter().raw("name", 8, replacement))) {
      assertThat(file.string("name")).isEqualTo("\ufffd");
    }
  }

  @Test
  void missingFileDirectoryAndEmptyFileAreNamed() throws IOException {
    Path missing = directory.resolve("missing.gguf");
    assertThatThrownBy(() -> GgufFile.open(missing))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining(missing.toString())
        .hasMessageContaining("no such file");
    assertThatThrownBy(() -> GgufFile.open(directory))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining("found a directory");
    assertThat(refuse(new byte[0]).field()).isEqualTo("magic");
  }

  @Test
  void foreignAndWrongEndianFilesAreSaidToBeSo() {
    assertThat(refuse("PK\u0003\u0004 and more".getBytes(StandardCharsets.ISO_8859_1)))
        .hasMessageContaining("magic")
        .hasMessageContaining("expected the bytes 47 47 55 46 (\"GGUF\"), found the bytes 50 4b 03 04");
    byte[] bigEndian = sample().toByteArray();
    bigEndian[4] = 0;
    bigEndian[7] = 3;
    assertThat(refuse(bigEndian))
        .hasMessageContaining("expected a little-endian file, found a big-endian one of version 3");
    byte[] reversed = sample().toByteArray();
    System.arraycopy("FUGG".getBytes(StandardCharsets.US_ASCII), 0, reversed, 0, 4);
    assertThat(refuse(reversed)).hasMessageContaining("wrong byte order");
  }

  @ParameterizedTest(name = "version {0}")
  @ValueSource(ints = {1, 4, 1_000_000})
  void otherVersionsAreNotSupported(int version) {
    Path file = write(sample().version(version).toByteArray());
    assertThatThrownBy(() -> GgufFile.open(file))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("GGUF version " + version)
        .hasMessageContaining("2 and 3");
  }

  @Test
  void truncatedAnywhereIsAnErrorOfOurs() throws IOException {
    byte[] whole = sample().toByteArray();
    for (int length = 0; length < whole.length; length++) {
      Path file = write(Arrays.copyOf(whole, length));
      EngineException refusal =
          catchThrowableOfType(EngineException.class, () -> GgufFile.open(file).close());
      assertThat(refusal).as("%d of %d bytes", length, whole.length).isNotNull();
      assertThat(refusal)
          .isInstanceOf(ModelFormatException.class)
          .hasMessageContaining(file.toString());
    }
  }

  @Test
  void countsAreBoundedByWhatTheFileHolds() {
    assertThat(refuse(sample().claimTensors(1L << 60)))
        .hasMessageContaining("tensor count: expected at most")
        .hasMessageContaining("1152921504606846978");
    assertThat(refuse(sample().claimMetadata(1L << 62)).field()).isEqualTo("metadata count");
    assertThat(refuse(sample().claimTensors(-3)).found()).isEqualTo("18446744073709551615");
    byte[] huge = GgufWriter.array(8, 1L << 61).toByteArray();
    assertThat(refuse(new GgufWriter().raw("list", 9, huge)).field())
        .isEqualTo("list array length");
    byte[] wraps = GgufWriter.array(10, (1L << 61) + 1).toByteArray();
    assertThat(refuse(new GgufWriter().raw("list", 9, wraps)).field())
        .isEqualTo("list array length");
    byte[] length = GgufWriter.little(8).putLong(Long.MIN_VALUE).array();
    assertThat(refuse(new GgufWriter().raw("text", 8, length))).hasMessageContaining("text");
  }

  @Test
  void arraysNestAFewLevelsAndNoMore() {
    byte[] nested = new byte[0];
    GgufWriter writer = new GgufWriter();
    for (int depth = 1; depth <= 4; depth++) {
      ByteArrayOutputStream out = GgufWriter.array(depth == 1 ? 0 : 9, depth == 1 ? 0 : 1);
      out.writeBytes(nested);
      nested = out.toByteArray();
    }
    try (GgufFile file = open(writer.raw("deep", 9, nested).string("after", "here"))) {
      assertThat(file.string("after")).isEqualTo("here");
      assertThatThrownBy(() -> file.integers("deep")).hasMessageContaining("an array of 1 array");
    }
    ByteArrayOutputStream deeper = GgufWriter.array(9, 1);
    deeper.writeBytes(nested);
    assertThat(refuse(new GgufWriter().raw("deep", 9, deeper.toByteArray())))
        .hasMessageContaining("nested at most 4 deep");
  }

  @Test
  void duplicatesAndUnknownValueTypesAreRefused() {
    assertThat(refuse(new GgufWriter().uint32("a", 1).uint32("a", 1)))
        .hasMessageContaining("each key once, found a again");
    assertThat(refuse(new GgufWriter().raw("b", 13, new byte[8])))
        .hasMessageContaining("b value type: expected 0 to 12, found 13");
    assertThat(refuse(new GgufWriter().string("", "x")))
        .hasMessageContaining("key of metadata entry 0 length");
    assertThat(refuse(sample().tensor("first", F32, bytes(4, 1), 1)))
        .hasMessageContaining("first again");
  }

  @ParameterizedTest(name = "alignment {0}")
  @ValueSource(ints = {0, 3, 48, Integer.MIN_VALUE})
  void alignmentIsAPowerOfTwo(int alignment) {
    assertThat(refuse(new GgufWriter().uint32("general.alignment", alignment)).field())
        .isEqualTo("general.alignment");
  }

  @Test
  void alignmentIsAnInteger() {
    assertThat(refuse(new GgufWriter().string("general.alignment", "32")))
        .hasMessageContaining("an integer, found string");
  }

  @Test
  void shapesAreChecked() {
    assertThat(refuse(new GgufWriter().tensorAt("t", F32, 0)))
        .hasMessageContaining("t dimensions: expected 1 to 4, found 0");
    assertThat(refuse(new GgufWriter().tensorAt("t", F32, 0, 1, 1, 1, 1, 1)))
        .hasMessageContaining("1 to 4, found 5");
    assertThat(refuse(new GgufWriter().tensorAt("t", F32, 0, 4, 0)))
        .hasMessageContaining("t extent 1");
    assertThat(refuse(new GgufWriter().tensorAt("t", F32, 0, -1)))
        .hasMessageContaining("found 18446744073709551615");
    assertThat(refuse(new GgufWriter().tensorAt("t", F32, 0, 1L << 32, 1L << 32)))
        .hasMessageContaining("t extents");
    assertThat(refuse(new GgufWriter().tensorAt("t", F32, 0, 1L << 62)))
        .hasMessageContaining("t size");
    assertThat(refuse(new GgufWriter().tensorAt("t", Q8_0, 0, 33)))
        .hasMessageContaining("a multiple of 32, the block of Q8_0, found 33");
    assertThat(refuse(new GgufWriter().tensorAt("x".repeat(65), F32, 0, 1)))
        .hasMessageContaining("name of tensor 0 length: expected 1 to 64");
  }

  @ParameterizedTest(name = "type {0}")
  @ValueSource(ints = {4, 5, 31, 36, 43, 999, -1})
  void unknownTensorTypeIsNamedWithTheTensor(int type) {
    Path file = write(new GgufWriter().tensorAt("blk.3.ffn_up.weight", type, 0, 32).toByteArray());
    assertThatThrownBy(() -> GgufFile.open(file))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("tensor type " + Integer.toUnsignedString(type))
        .hasMessageContaining("blk.3.ffn_up.weight")
        .hasMessageContaining(file.toString());
  }

  @Test
  void tensorDataLiesInsideTheFileAlignedAndApart() {
    GgufWriter base = new GgufWriter().tensor("a", F32, bytes(64, 1), 16);
    assertThat(refuse(base.tensorAt("b", F32, 16, 4)))
        .hasMessageContaining("b offset: expected a multiple of the alignment 32, found 16");
    base = new GgufWriter().tensor("a", F32, bytes(64, 1), 16);
    assertThat(refuse(base.tensorAt("b", F32, 32, 8)))
        .hasMessageContaining("b data")
        .hasMessageContaining("an overlap");
    base = new GgufWriter().tensor("a", F32, bytes(64, 1), 16);
    assertThat(refuse(base.tensorAt("b", F32, 64, 1)))
        .hasMessageContaining(
            "b data: expected 4 bytes of F32 at offset 64, found 64 bytes of data in the file");
    base = new GgufWriter().tensor("a", F32, bytes(64, 1), 16);
    assertThat(refuse(base.tensorAt("b", F32, Long.MIN_VALUE, 1)).field()).isEqualTo("b data");
    assertThat(refuse(new GgufWriter().tensorAt("t", F32, 0, 1L << 60)))
        .hasMessageContaining("4611686018427387904 bytes");
  }

  @Test
  void afterCloseDataIsGoneAndShapesStay() {
    GgufFile file = open(sample());
    GgufTensor tensor = file.tensor("first");
    MemorySegment data = file.data(tensor);
    file.close();
    file.close();
    assertThatThrownBy(() -> data.get(JAVA_BYTE, 0)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> file.string("general.architecture"))
        .isInstanceOf(IllegalStateException.class);
    assertThat(file.tensor("first").shape()).containsExactly(3L, 2L);
  }

  /** An array of one string of these bytes. */
  private static GgufWriter stringOf(byte[] bytes) {
    ByteArrayOutputStream array = GgufWriter.array(8, 2);
    array.writeBytes(GgufWriter.bytesOf("before"));
    array.writeBytes(GgufWriter.little(Long.BYTES).putLong(bytes.length).array());
    array.writeBytes(bytes);
    return new GgufWriter().raw("strings", 9, array.toByteArray());
  }

  @ParameterizedTest(name = "{0}")
  @ValueSource(
      strings = {"7f", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf", "f0908080", "f48fbfbf", "61c3a962"})
  void stringsOfCharactersOfEveryLength(String hex) throws IOException {
    byte[] bytes = HexFormat.of().parseHex(hex);
    try (GgufFile file = open(stringOf(bytes))) {
      GgufStrings strings = file.strings("strings");
      assertThat(strings).containsExactly("before", new String(bytes, StandardCharsets.UTF_8));
      assertThat(Arrays.copyOfRange(strings.bytes(), strings.start(1), strings.end(1))).isEqualTo(bytes);
      assertThat(strings.end(0) - strings.start(0)).isEqualTo("before".length());
      assertThatThrownBy(() -> strings.get(2)).isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource({
    "80, 0", "61c3, 1", "c080, 0", "c1bf, 0", "c341, 0", "e08080, 0", "6161eda080, 2", "e282, 0", "f0808080, 0",
    "f4908080, 0", "f8888080, 0", "61ff, 1"
  })
  void malformedStringsAreRefusedWithTheirPlace(String hex, int at) throws IOException {
    try (GgufFile file = open(stringOf(HexFormat.of().parseHex(hex)))) {
      assertThatThrownBy(() -> file.strings("strings"))
          .isInstanceOf(ModelFormatException.class)
          .hasMessageContaining("strings")
          .hasMessageContaining("expected UTF-8")
          .hasMessageContaining("a malformed sequence at byte " + at + " of the string");
    }
  }
}
