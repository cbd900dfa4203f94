package dev.tacho.metrics.perf;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Derives a {@link ModelShape} from the configuration file that comes with a model, as vLLM's MFU metrics read it:
 * which of several names a size goes by, which layers have experts or a window, how many bytes an element takes.
 * Immutable.
 */
public final class ModelShapeConfig {
  private static final List<String> KV_HEADS = List.of("n_head_kv", "num_kv_heads", "num_key_value_heads",
      "multi_query_group_num", "num_attention_groups");
  private static final List<String> EXPERTS =
      List.of("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts");
  private static final List<String> EXPERTS_PER_TOKEN =
      List.of("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k");
  private static final Set<String> LATENT_TYPES = Set.of("axk1", "deepseek_v2", "deepseek_v3", "deepseek_v32",
      "deepseek_v4", "deepseek_v41", "deepseek_mtp", "dots3_note", "k3_dspark", "glm5_next", "glm5_next_text",
      "glm_moe_dsa", "glm4_moe_lite", "glm4_moe_lite_mtp", "kimi_k2", "kimi_linear", "longcat_flash",
      "pangu_ultra_moe", "pangu_ultra_moe_mtp", "bailing_hybrid", "bailing_hybrid_mtp", "bailing_hybrid_v3_mtp",
      "hy_v4", "hy_v4_mtp");
  private static final Set<String> ONE_BYTE_WEIGHTS = Set.of("fp8", "fbgemm_fp8", "ptpc_fp8", "fp_quant", "modelopt",
      "modelopt_mxfp8", "experts_int8");
  private static final Set<String> HALF_BYTE_WEIGHTS = Set.of("mxfp4", "awq", "awq_marlin", "gptq", "gptq_marlin",
      "modelopt_fp4", "petit_nvfp4", "compressed-tensors", "torchao", "quark", "moe_wna16", "inc");
  private static final List<String> ONE_BYTE_CACHES = List.of("fp8", "int8", "int4", "nvfp4", "turboquant");
  private static final Map<String, Integer> FLOAT_BYTES = Map.of("float32", 4, "float", 4, "float16", 2, "half", 2,
      "bfloat16", 2);

  private final Map<String, ?> config;
  private final int layers;

  /**
   * Reads a configuration.
   *
   * @param config the text model's part of the file: strings, numbers, lists
   * @throws IllegalArgumentException if it lacks num_hidden_layers, num_attention_heads, hidden_size or vocab_size
   */
  public ModelShapeConfig(Map<String, ?> config) {
    this.config = Collections.unmodifiableMap(new HashMap<>(config));
    this.layers = required("num_hidden_layers");
  }

  /**
   * The shape of the model on one device.
   *
   * @param dtype of activations and of weights that are not quantised: float32, float16 or bfloat16
   * @param cacheDtype of the KV cache; auto for that of the model
   * @param quantization method of the weights, null if they are not quantised; of an unknown one the estimate leaves
   *     attention and feed-forward out
   * @param expertParallel true if experts are divided over devices as wholes
   * @param disableSlidingWindow true if every layer sees everything
   * @throws IllegalArgumentException if a dtype is unknown
   */
  public ModelShape shape(String dtype, String cacheDtype, @Nullable String quantization, boolean expertParallel,
      boolean disableSlidingWindow) {
    int hidden = required("hidden_size");
    int heads = required("num_attention_heads");
    int activationBytes = floatBytes("dtype", dtype);
    LatentShape latent = latent();
    long window = disableSlidingWindow ? 0 : size("sliding_window", 0);
    int slidingLayers = window > 0 && latent == null ? slidingLayers() : 0;
    return new ModelShape(layers, hidden, heads, first(KV_HEADS, heads), headDim(hidden, heads),
        size("intermediate_size", 4 * hidden), required("vocab_size"), activationBytes,
        weightBytes(activationBytes, quantization), cacheBytes(activationBytes, cacheDtype),
        slidingLayers > 0 ? window : 0, slidingLayers, 1, 1, 1, latent, experts(), expertParallel);
  }

  private int headDim(int hidden, int heads) {
    int given = size("head_dim", 0);
    return given > 0 ? given : size("hidden_size_per_head", hidden / heads);
  }

  private @Nullable LatentShape latent() {
    String type = String.valueOf(config.get("model_type"));
    if (!LATENT_TYPES.contains(type) || size("kv_lora_rank", 0) == 0) {
      return null;
    }
    return new LatentShape(size("q_lora_rank", 0), required("kv_lora_rank"), required("qk_nope_head_dim"),
        required("qk_rope_head_dim"), required("v_head_dim"));
  }

  private ExpertShape experts() {
    int experts = first(EXPERTS, 0);
    int withExperts = expertLayers(experts);
    if (withExperts == 0) {
      return ExpertShape.NONE;
    }
    return new ExpertShape(experts, first(EXPERTS_PER_TOKEN, 0),
        size("moe_intermediate_size", size("intermediate_size", 0)),
        size("n_shared_experts", size("num_shared_experts", 0)), withExperts);
  }

  private int expertLayers(int experts) {
    int count = experts > 0 ? layers : 0;
    int step = size("interleave_moe_layer_step", 0);
    if (step > 0) {
      count = layers / step;
    }
    if (config.containsKey("moe_layer_freq") && config.containsKey("first_k_dense_replace")) {
      int frequency = size("moe_layer_freq", 1);
      int dense = size("first_k_dense_replace", 0);
      count = 0;
      for (int layer = dense; layer < layers; layer++) {
        if (layer % frequency == 0) {
          count++;
        }
      }
    }
    return count;
  }

  private int slidingLayers() {
    if (config.get("layer_types") instanceof List<?> types) {
      return (int) types.stream().limit(layers)
          .filter(type -> type.toString().toLowerCase(Locale.ROOT).contains("sliding")).count();
    }
    return "gemma2".equals(config.get("model_type")) ? (layers + 1) / 2 : layers;
  }

  private static double weightBytes(int activationBytes, @Nullable String quantization) {
    if (quantization == null) {
      return activationBytes;
    }
    return ONE_BYTE_WEIGHTS.contains(quantization) ? 1 : HALF_BYTE_WEIGHTS.contains(quantization) ? 0.5 : 0;
  }

  private static int cacheBytes(int activationBytes, String dtype) {
    if (dtype.equals("auto")) {
      return activationBytes;
    }
    return ONE_BYTE_CACHES.stream().anyMatch(dtype::startsWith) ? 1 : floatBytes("cacheDtype", dtype);
  }

  private static int floatBytes(String what, String dtype) {
    Integer bytes = FLOAT_BYTES.get(dtype);
    if (bytes == null) {
      throw new IllegalArgumentException(what + " \"" + dtype + "\": must be one of " + FLOAT_BYTES.keySet());
    }
    return bytes;
  }

  private int first(List<String> names, int otherwise) {
    for (String name : names) {
      if (config.get(name) instanceof Number number) {
        return number.intValue();
      }
    }
    return otherwise;
  }

  private int size(String name, int otherwise) {
    return config.get(name) instanceof Number number ? number.intValue() : otherwise;
  }

  private int required(String name) {
    if (config.get(name) instanceof Number number) {
      return number.intValue();
    }
    throw new IllegalArgumentException("the model's configuration has no number " + name);
  }
}
