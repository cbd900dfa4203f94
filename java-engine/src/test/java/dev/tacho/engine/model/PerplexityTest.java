package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.format.GgufTensor;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import dev.tacho.engine.token.Tokenizer;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What rounding of activations costs: the perplexity of six stories that the bundled model has never seen, with its
 * weights in each type, beside that of the same weights as floats.
 *
 * <p>The model is made twice as wide with zeros, so that its rows are whole blocks of 256: heads of zeros attend to
 * nothing and add nothing, and norms of half the mean square have weights divided by the root of two. That changes no
 * logit.
 */
@Timeout(300)
class PerplexityTest {
  private static final Path MODEL =
      Path.of(System.getProperty("tacho.root", "..")).resolve("models/tacho-tales/tacho-tales.gguf");
  private static final List<DType> TYPES =
      List.of(DType.F16, DType.BF16, DType.Q8_0, DType.Q4_0, DType.Q4_K, DType.Q6_K);
  private static final double ALLOWED = 0.005;

  private static final int LAYERS = 4;
  private static final int EMBEDDING = 256;
  private static final int FEED_FORWARD = 512;
  private static final int HEADS = 8;
  private static final int KV_HEADS = 4;
  private static final int HEAD_DIM = 32;
  private static final int LONGEST = 300;

  @TempDir private static Path folder;

  private static List<int[]> stories = List.of();
  private static final Map<DType, Form> FORMS = new EnumMap<>(DType.class);

  /** The model with weights of a type, and how surprised it is by each story with the same weights as floats. */
  private record Form(Path file, List<Double> asFloats) {}

  @BeforeAll
  static void makeModels() throws IOException {
    try (GgufFile source = GgufFile.open(MODEL);
        Tokenizer tokenizer = Tokenizer.of(source);
        InputStream in =
            Objects.requireNonNull(PerplexityTest.class.getResourceAsStream("/perplexity/stories.txt"))) {
      stories =
          new String(in.readAllBytes(), StandardCharsets.UTF_8)
              .lines()
              .map(story -> tokenizer.encode(story, true))
              .toList();
      for (DType dtype : TYPES) {
        Path quantized = folder.resolve("tales-" + dtype + ".gguf");
        Path floats = folder.resolve("floats-" + dtype + ".gguf");
        write(source, dtype, false, quantized);
        write(source, dtype, true, floats);
        FORMS.put(dtype, new Form(quantized, surprises(floats, TestKernels.all().getLast().getPayload(), stories)));
      }
    }
  }

  static Stream<Arguments> kernelsAndTypes() {
    return TestKernels.with(TYPES.toArray());
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndTypes")
  void perplexityIsThatOfTheSameWeightsAsFloats(Kernels kernels, DType dtype) {
    Form form = Objects.requireNonNull(FORMS.get(dtype));
    // The scalar provider rounds as all others do, and takes far longer.
    List<int[]> read = kernels.id().equals("scalar") ? stories.subList(0, 1) : stories;
    double expected = perplexity(form.asFloats().subList(0, read.size()), read);
    double found = perplexity(surprises(form.file(), kernels, read), read);
    assertThat(expected).as("of 1024, as the model has learnt this language").isBetween(1.0, 2.0);
    assertThat(found / expected).as("of %s", expected).isBetween(1 - ALLOWED, 1 + ALLOWED);
  }

  /** e to the mean surprise of a token. */
  private static double perplexity(List<Double> surprises, List<int[]> read) {
    double sum = surprises.stream().mapToDouble(Double::doubleValue).sum();
    return Math.exp(sum / read.stream().mapToInt(story -> story.length - 2).sum());
  }

  /** The sum of -ln(probability) of each token of a story but the first two, for each story. */
  private static List<Double> surprises(Path model, Kernels kernels, List<int[]> read) {
    ModelRig.Shape shape =
        ModelRig.Shape.f32(2).withMaxSequences(1).withMaxContext(2 * LONGEST).withDrafts(LONGEST);
    List<Double> sums = new ArrayList<>();
    try (ModelRig rig = new ModelRig(model, kernels, shape)) {
      for (int[] story : read) {
        judge(rig, story);
        double sum = 0;
        for (int row = 0; row < story.length - 2; row++) {
          sum += surprise(rig.runner().logits(row), story[row + 2]);
        }
        sums.add(sum);
      }
    }
    return sums;
  }

  /** Has the logits behind the second and each later token of a story computed, which stand in as drafts. */
  private static void judge(ModelRig rig, int[] story) {
    SamplingParams forced =
        SamplingParams.builder()
            .temperature(0)
            .logitBias(Map.of(story[1], 100f))
            .maxTokens(story.length)
            .ignoreEos(true)
            .build();
    Sequence sequence = rig.add("story", Arrays.copyOf(story, 1), forced);
    rig.step();
    assertThat(sequence.token(1)).isEqualTo(story[1]);
    rig.setDrafts(sequence, Arrays.copyOfRange(story, 2, story.length));
    StepPlan plan = rig.schedule();
    StepResult result = rig.runner().await(rig.runner().launch(plan));
    rig.update(plan, result);
    rig.abort(sequence);
  }

  private static double surprise(float[] logits, int token) {
    double most = Double.NEGATIVE_INFINITY;
    for (float logit : logits) {
      most = Math.max(most, logit);
    }
    double sum = 0;
    for (float logit : logits) {
      sum += Math.exp(logit - most);
    }
    return most + Math.log(sum) - logits[token];
  }

  // ---- the model

  /** The bundled model, wider, with matrices of a type, or with what they hold as floats. */
  private static void write(GgufFile source, DType dtype, boolean asFloats, Path file) {
    TinyModel model = new TinyModel(0, DType.F32).without("output.weight");
    model.number("llama.block_count", LAYERS);
    model.number("llama.embedding_length", EMBEDDING);
    model.number("llama.feed_forward_length", FEED_FORWARD);
    model.number("llama.attention.head_count", HEADS);
    model.number("llama.attention.head_count_kv", KV_HEADS);
    model.real("llama.attention.layer_norm_rms_epsilon", 0.5e-5f);
    for (GgufTensor tensor : source.tensors()) {
      String name = tensor.name();
      float[] elements = elements(source, tensor);
      if (tensor.shape().size() == 1) {
        float[] wide = new float[EMBEDDING];
        for (int i = 0; i < elements.length; i++) {
          wide[i] = (float) (elements[i] / Math.sqrt(2));
        }
        model.tensor(name, DType.F32.id(), Quantizer.quantize(DType.F32, wide), EMBEDDING);
      } else {
        int columns = tensor.shape().get(0).intValue();
        int rows = tensor.shape().get(1).intValue();
        int wideColumns = name.contains("ffn_down") ? FEED_FORWARD : EMBEDDING;
        int wideRows = wideRows(name, rows);
        float[] wide = new float[wideRows * wideColumns];
        for (int row = 0; row < rows; row++) {
          System.arraycopy(elements, row * columns, wide, row * wideColumns, columns);
        }
        byte[] content = Quantizer.quantize(dtype, wide);
        if (asFloats) {
          MemorySegment quantized = MemorySegment.ofArray(content);
          for (int i = 0; i < wide.length; i++) {
            wide[i] = Elements.get(dtype, quantized, 0, i);
          }
          content = Quantizer.quantize(DType.F32, wide);
        }
        model.tensor(name, (asFloats ? DType.F32 : dtype).id(), content, wideColumns, wideRows);
      }
    }
    model.write(file);
  }

  private static int wideRows(String name, int rows) {
    if (name.contains("attn_k") || name.contains("attn_v")) {
      return KV_HEADS * HEAD_DIM;
    }
    if (name.contains("ffn_gate") || name.contains("ffn_up")) {
      return FEED_FORWARD;
    }
    return name.startsWith("blk.") ? EMBEDDING : rows;
  }

  private static float[] elements(GgufFile file, GgufTensor tensor) {
    float[] elements = new float[(int) tensor.elements()];
    for (int i = 0; i < elements.length; i++) {
      elements[i] = Elements.get(file.dtype(tensor), file.data(tensor), 0, i);
    }
    return elements;
  }
}
