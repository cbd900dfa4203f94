package dev.tacho.engine.kernel.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.KvCacheLayer;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.SequenceLayout;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The Java bindings against what the C++ compiler printed about the same header into the native jar. */
class NativeAbiTest {
  private static final List<StructLayout> STRUCTS =
      List.of(
          NativeStructs.COUNTERS,
          NativeStructs.ATTENTION_ITEM,
          NativeStructs.WeightPack.LAYOUT,
          NativeStructs.ActivationPack.LAYOUT,
          NativeStructs.Matmul.LAYOUT,
          NativeStructs.EmbeddingLookup.LAYOUT,
          NativeStructs.RmsNorm.LAYOUT,
          NativeStructs.Rope.LAYOUT,
          NativeStructs.KvWrite.LAYOUT,
          NativeStructs.Attention.LAYOUT,
          NativeStructs.KvCopyBlocks.LAYOUT,
          NativeStructs.SiluMul.LAYOUT);

  private static final Properties ABI = new Properties();

  @BeforeAll
  static void read() throws IOException {
    try (InputStream in = NativeAbiTest.class.getResourceAsStream("/META-INF/native/linux-x86_64/abi.properties")) {
      assertThat(in).as("abi.properties of the native jar").isNotNull();
      ABI.load(in);
    }
  }

  /** The properties that begin with a prefix, without it. */
  private static SortedMap<String, String> compiled(String prefix) {
    SortedMap<String, String> found = new TreeMap<>();
    for (String key : ABI.stringPropertyNames()) {
      if (key.startsWith(prefix)) {
        found.put(key.substring(prefix.length()), ABI.getProperty(key));
      }
    }
    return found;
  }

  @Test
  void everyFunctionIsBoundWithItsSignature() {
    Map<String, String> bound =
        NativeAbi.FUNCTIONS.entrySet().stream()
            .collect(Collectors.toMap(Map.Entry::getKey, e -> signature(e.getValue())));
    assertThat(new TreeMap<>(bound)).isEqualTo(compiled("function."));
  }

  @Test
  void everyStructHasItsSizeAndAlignment() {
    SortedMap<String, String> bound = new TreeMap<>();
    for (StructLayout layout : STRUCTS) {
      bound.put(layout.name().orElseThrow(), layout.byteSize() + "," + layout.byteAlignment());
    }
    assertThat(bound).isEqualTo(compiled("struct."));
  }

  @Test
  void everyMemberHasItsOffsetAndType() {
    SortedMap<String, String> bound = new TreeMap<>();
    for (StructLayout layout : STRUCTS) {
      for (MemoryLayout member : layout.memberLayouts()) {
        String name = member.name().orElseThrow();
        long offset = layout.byteOffset(PathElement.groupElement(name));
        bound.put(layout.name().orElseThrow() + "." + name, offset + "," + code(member));
      }
    }
    assertThat(bound).isEqualTo(compiled("member."));
  }

  @Test
  void everyConstantHasItsValue() {
    SortedMap<String, String> bound = new TreeMap<>();
    bound.put("TACHO_ABI_VERSION", "" + NativeAbi.ABI_VERSION);
    bound.put("TACHO_OK", "" + NativeAbi.OK);
    bound.put("TACHO_EINVAL", "" + NativeAbi.EINVAL);
    bound.put("TACHO_EUNSUPPORTED", "" + NativeAbi.EUNSUPPORTED);
    bound.put("TACHO_EINTERNAL", "" + NativeAbi.EINTERNAL);
    bound.put("TACHO_ISA_AUTO", "" + NativeAbi.ISA_AUTO);
    for (InstructionSet set : InstructionSet.values()) {
      bound.put("TACHO_ISA_" + set, "" + set.id());
    }
    for (DType dtype : DType.values()) {
      bound.put("TACHO_DTYPE_" + dtype, "" + dtype.id());
    }
    bound.put("TACHO_ACTIVATION_F32", "" + ActivationFormat.FLOAT32.id());
    bound.put("TACHO_ACTIVATION_INT8", "" + ActivationFormat.INT8.id());
    bound.put("TACHO_ACTIVATION_BF16", "" + ActivationFormat.BFLOAT16.id());
    bound.put("TACHO_KV_BLOCK_TOKENS", "" + KvCacheLayer.BLOCK_TOKENS);
    bound.put("TACHO_ATTENTION_SPLIT_KEYS", "" + AttentionBatch.SPLIT_KEYS);
    bound.put("TACHO_ROPE_ADJACENT", "" + NativeAbi.ROPE_ADJACENT);
    bound.put("TACHO_ROPE_HALVES", "" + NativeAbi.ROPE_HALVES);
    assertThat(bound).isEqualTo(compiled("constant."));
  }

  @Test
  void theCounterLineOfAWorkerIsTheStruct() {
    assertThat(NativeStructs.COUNTERS.byteSize()).isEqualTo(KernelWorker.LINE_BYTES);
    Map<String, Integer> offsets =
        Map.of(
            "calls", KernelWorker.CALLS_OFFSET,
            "flops", KernelWorker.FLOPS_OFFSET,
            "read_bytes", KernelWorker.READ_BYTES_OFFSET,
            "write_bytes", KernelWorker.WRITE_BYTES_OFFSET,
            "nanos", KernelWorker.NANOS_OFFSET);
    offsets.forEach(
        (name, offset) ->
            assertThat(NativeStructs.COUNTERS.byteOffset(PathElement.groupElement(name)))
                .as(name)
                .isEqualTo((long) offset));
  }

  private static String signature(FunctionDescriptor descriptor) {
    String arguments =
        descriptor.argumentLayouts().stream().map(NativeAbiTest::code).collect(Collectors.joining());
    return "(" + arguments + ")" + descriptor.returnLayout().map(NativeAbiTest::code).orElse("V");
  }

  private static String code(MemoryLayout layout) {
    return switch (layout) {
      case ValueLayout.OfInt _ -> "I";
      case ValueLayout.OfLong _ -> "J";
      case ValueLayout.OfFloat _ -> "F";
      case ValueLayout.OfDouble _ -> "D";
      case AddressLayout _ -> "P";
      case SequenceLayout array -> code(array.elementLayout()) + "[" + array.elementCount() + "]";
      default -> "?";
    };
  }
}
