package dev.tacho.engine;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The one table of the engine's options: name, type, default and help text. The command line, its help, the
 * environment, {@link EngineConfig} and the metric {@code vllm:cache_config_info} are made from it. Names and value
 * syntax are vLLM's for what vLLM has.
 */
public enum EngineOption {
  /** Which model. */
  MODEL("model", Type.PATH, "", "the GGUF file of the model; required"),
  /** What the model is called outside. */
  SERVED_MODEL_NAME(
      "served-model-name",
      Type.STRING,
      "",
      "name of the model in requests and metrics; by default the file's name without its ending"),
  /** The context length. */
  MAX_MODEL_LEN(
      "max-model-len",
      Type.COUNT,
      "",
      "tokens of prompt and output together at most; by default what the model was trained for"),
  /** Sequences side by side. */
  MAX_NUM_SEQS(
      "max-num-seqs",
      Type.COUNT,
      "128",
      "sequences that run at the same time at most; if not set, never above max-num-batched-tokens"),
  /** The token budget of a step. */
  MAX_NUM_BATCHED_TOKENS(
      "max-num-batched-tokens",
      Type.COUNT,
      "512",
      "tokens that one step computes at most; bounds how long running requests wait for a prompt"),
  /** How much of a step one long prompt may take. */
  LONG_PREFILL_TOKEN_THRESHOLD(
      "long-prefill-token-threshold",
      Type.COUNT,
      "0",
      "tokens of one prompt that one step computes at most while other requests are there; 0 for no such limit"),
  /** Whether prompts are cut into pieces. */
  ENABLE_CHUNKED_PREFILL(
      "enable-chunked-prefill",
      Type.SWITCH,
      "true",
      "a prompt may be computed in pieces, so that others go on meanwhile"),
  /** Who comes first. */
  SCHEDULING_POLICY(
      "scheduling-policy",
      Type.WORD,
      "fcfs",
      "who is admitted first: fcfs the one that came first, priority the one with the smallest number",
      "fcfs",
      "priority"),
  /** Whether planning and computing overlap. */
  ASYNC_SCHEDULING(
      "async-scheduling",
      Type.SWITCH,
      "true",
      "plan and launch the next step while one computes; not with speculative-config, as drafts continue tokens that"
          + " must be known first"),
  /** Whether several tokens are guessed and checked at a time. */
  SPECULATIVE_CONFIG(
      "speculative-config",
      Type.SPECULATION,
      "",
      "guess tokens by looking for the end of the text in what stands before it, and check them in one step: JSON such"
          + " as {\"method\": \"ngram\", \"num_speculative_tokens\": 4, \"prompt_lookup_min\": 2,"
          + " \"prompt_lookup_max\": 5}; by default nothing is guessed"),
  /** Whether an answer says what became of its drafts. */
  PER_REQUEST_SPEC_DECODE_METRICS(
      "per-request-spec-decode-metrics",
      Type.WORD,
      "none",
      "what an answer with one completion says of its drafts: summary the sums, detailed also each step",
      "none",
      "summary",
      "detailed"),
  /** Whether requests with a NaN in their logits are counted. */
  COMPUTE_NANS_IN_LOGITS(
      "compute-nans-in-logits",
      Type.SWITCH,
      "false",
      "count requests whose logits had a NaN among them (vllm:corrupted_requests)"),
  /** When requests are refused, by their number. */
  MAX_NUM_QUEUED_REQS(
      "max-num-queued-reqs",
      Type.COUNT,
      "",
      "sequences that may be unfinished, running ones included; a request that would make more is refused; by default"
          + " any number"),
  /** When requests are refused, by the length of their prompts. */
  MAX_NUM_QUEUED_TOKENS(
      "max-num-queued-tokens",
      Type.COUNT,
      "",
      "prompt tokens of sequences without a first output from which on requests are refused; by default any number"),
  /** Whether packed weights are kept. */
  REPACK_CACHE(
      "repack-cache",
      Type.PATH,
      "",
      "directory in which weights are kept as the kernels want them, as large as the model; the next start maps them"
          + " instead of packing again. Nobody may shorten such a file while it is mapped, or the process dies; a"
          + " mapping has no huge pages. By default none"),
  /** What computes. */
  KERNELS(
      "kernels",
      Type.WORD,
      "auto",
      "what computes: auto takes the first that can be had of cuda, native, vector, scalar",
      "auto",
      "cuda",
      "native",
      "vector",
      "scalar"),
  /** Size of the worker team. */
  THREADS("threads", Type.COUNT, "0", "worker threads of each engine; 0 to divide the CPUs that this process may use"),
  /** Engines side by side. */
  DATA_PARALLEL_SIZE(
      "data-parallel-size",
      Type.COUNT,
      "1",
      "engines in this process, which share the weights and divide the CPUs; each has its own KV cache and queue, and"
          + " its number is the label engine of its metrics"),
  /** Whether clients may put the engine to sleep. */
  ENABLE_SLEEP_MODE(
      "enable-sleep-mode",
      Type.SWITCH,
      "false",
      "serve /sleep, /wake_up and /is_sleeping, with which any client can have the engine give its memory up"),
  /** Size of the KV cache in bytes. */
  KV_CACHE_MEMORY(
      "kv-cache-memory",
      Type.MEMORY,
      "",
      "memory for the KV cache of each engine, e.g. 4GiB; by default enough for max-num-seqs full sequences, at most"
          + " 4GiB and a quarter of the machine's memory"),
  /** Size of the KV cache in blocks. */
  NUM_GPU_BLOCKS_OVERRIDE(
      "num-gpu-blocks-override",
      Type.COUNT,
      "",
      "blocks of each engine's KV cache, the null block included, instead of what kv-cache-memory gives; vLLM's name,"
          + " on a CPU too"),
  /** Precision of the KV cache. */
  KV_CACHE_DTYPE(
      "kv-cache-dtype",
      Type.WORD,
      "auto",
      "type of keys and values in the KV cache; auto is float32, q8_0 keeps 8 bits and a scale for 32 elements",
      "auto",
      "float32",
      "float16",
      "bfloat16",
      "q8_0"),
  /** Whether prompts that begin alike share their beginning. */
  ENABLE_PREFIX_CACHING(
      "enable-prefix-caching",
      Type.SWITCH,
      "true",
      "keep what was computed of earlier sequences, in whole blocks, for prompts that begin alike"),
  /** How the beginnings of prompts are recognized. */
  PREFIX_CACHING_HASH_ALGO(
      "prefix-caching-hash-algo",
      Type.WORD,
      "sha256",
      "hash of the prefix cache's blocks: sha256 cannot be made to collide, xxhash is a faster one of 128 bits for"
          + " requests that are trusted",
      "sha256",
      "xxhash"),
  /** Where random numbers begin. */
  SEED("seed", Type.INTEGER, "0", "start of the random numbers of requests that bring no seed"),
  /** Whether nothing is measured. */
  DISABLE_LOG_STATS(
      "disable-log-stats",
      Type.SWITCH,
      "false",
      "record no statistics: /metrics has only the state of the engine"),
  /** Whether the work of steps is estimated. */
  ENABLE_MFU_METRICS(
      "enable-mfu-metrics", Type.SWITCH, "true", "estimate the floating point operations and bytes of each step"),
  /** What the machine computes at most. */
  PEAK_FLOPS(
      "peak-flops",
      Type.NUMBER,
      "",
      "floating point operations a second that an engine's threads reach at most, for tacho:mfu_ratio; by default"
          + " measured once, when nothing has run for a second, and remembered for this kind of CPU"),
  /** What the memory gives at most. */
  PEAK_BANDWIDTH(
      "peak-bandwidth",
      Type.NUMBER,
      "",
      "bytes a second that an engine's threads read from memory at most, for tacho:mbu_ratio; goes with peak-flops"),
  /** Where other processes find the metrics. */
  METRICS_DIRECTORY(
      "metrics-directory",
      Type.PATH,
      "",
      "directory in which other processes of this user find metrics and events, best under /dev/shm; by default none"),
  /** How often statistics are logged. */
  LOG_STATS_INTERVAL("log-stats-interval", Type.DURATION, "10s", "time between two lines of statistics in the log"),
  /** Whether there is one line for all engines. */
  AGGREGATE_ENGINE_LOGGING(
      "aggregate-engine-logging",
      Type.SWITCH,
      "false",
      "log one line of statistics for all engines of this process instead of one for each"),
  /** Whether each step is logged. */
  ENABLE_LOGGING_ITERATION_DETAILS(
      "enable-logging-iteration-details",
      Type.SWITCH,
      "false",
      "log a line for each step: how many requests and tokens were prompts or output, and how long it took"),
  /** Whether the life of KV blocks is followed. */
  KV_CACHE_METRICS(
      "kv-cache-metrics",
      Type.SWITCH,
      "false",
      "follow a sample of the KV blocks: how long they live, lie idle, and until they are used again"),
  /** How many KV blocks are followed. */
  KV_CACHE_METRICS_SAMPLE(
      "kv-cache-metrics-sample",
      Type.NUMBER,
      "0.01",
      "share of the KV blocks that kv-cache-metrics follows, above 0 and at most 1"),
  /** Whether CUDA graphs are reported. */
  CUDAGRAPH_METRICS(
      "cudagraph-metrics", Type.SWITCH, "false", "log how steps were padded to CUDA graphs; needs a build with those"),
  /** Bounds of histograms. */
  CUSTOM_HISTOGRAM_BUCKETS(
      "custom-histogram-buckets",
      Type.BUCKETS,
      "",
      "bounds of histogram buckets in place of the usual, as JSON: {\"request_latency\": [0.5, 1, 5]}"),
  /** Whether metrics of an earlier release are shown. */
  SHOW_HIDDEN_METRICS_FOR_VERSION(
      "show-hidden-metrics-for-version",
      Type.STRING,
      "",
      "show also what has been hidden since this release of vLLM, e.g. 0.32; none is hidden at present"),
  /** When a long wait is logged. */
  LOG_WAITING_AFTER(
      "log-waiting-after",
      Type.DURATION,
      "30s",
      "the log says why, when a request has waited so long, and if many are preempted in that time; 0 for never"),
  /** Size of a KV block. */
  BLOCK_SIZE("block-size", Type.WORD, "16", "tokens of a KV block; this build has 16 only", "16");

  /** The syntax of an option's values. */
  public enum Type {
    /** Any text. */
    STRING(String.class),
    /** One of a few words. */
    WORD(String.class),
    /** A file. */
    PATH(Path.class),
    /** A whole number from 0 to 2^31 - 1; {@code 32k} is 32,000 and {@code 32K} 32,768. */
    COUNT(Integer.class),
    /** A whole number of 64 bits. */
    INTEGER(Long.class),
    /** {@code true} or {@code false}. */
    SWITCH(Boolean.class),
    /** A decimal number. */
    NUMBER(Double.class),
    /** A {@link MemorySize}. */
    MEMORY(MemorySize.class),
    /** {@link HistogramBuckets}. */
    BUCKETS(HistogramBuckets.class),
    /** A {@link SpeculativeConfig}. */
    SPECULATION(SpeculativeConfig.class),
    /** A time such as {@code 10s}, {@code 500ms}, {@code 2m}; a bare number is seconds. */
    DURATION(Duration.class);

    private final Class<?> javaType;

    Type(Class<?> javaType) {
      this.javaType = javaType;
    }

    /** The Java type of a value. */
    public Class<?> javaType() {
      return javaType;
    }
  }

  private static final String ENVIRONMENT_PREFIX = "TACHO_";

  private final String optionName;
  private final Type type;
  private final String defaultText;
  private final String help;
  @SuppressWarnings("ImmutableEnumChecker") // made by List.of
  private final List<String> words;

  EngineOption(String optionName, Type type, String defaultText, String help, String... words) {
    this.optionName = optionName;
    this.type = type;
    this.defaultText = defaultText;
    this.help = help;
    this.words = List.of(words);
  }

  /** The name on the command line, without dashes before it. */
  public String optionName() {
    return optionName;
  }

  /** The name with underscores, as in vLLM's configuration and in {@code vllm:cache_config_info}. */
  public String key() {
    return optionName.replace('-', '_');
  }

  /** The environment variable that sets it. */
  public String environmentName() {
    return ENVIRONMENT_PREFIX + key().toUpperCase(Locale.ROOT);
  }

  /** The syntax of values. */
  public Type type() {
    return type;
  }

  /** The default in the syntax of values; empty if it depends on the model or the machine, or if there is none. */
  public String defaultText() {
    return defaultText;
  }

  /** What it does, for people. */
  public String help() {
    return help;
  }

  /** The words it takes, if its type is {@link Type#WORD}. */
  public List<String> words() {
    return words;
  }

  /**
   * The option of this name, written with dashes or underscores.
   *
   * @throws ConfigurationException if there is none; names the nearest
   */
  public static EngineOption of(String name) {
    EngineOption option = find(name);
    if (option == null) {
      throw new ConfigurationException(name, "there is no such option; the nearest is --" + nearest(name).optionName);
    }
    return option;
  }

  /** The option of this name, or null. */
  static @Nullable EngineOption find(String name) {
    String dashed = name.replace('_', '-');
    for (EngineOption option : values()) {
      if (option.optionName.equals(dashed)) {
        return option;
      }
    }
    return null;
  }

  /** The option whose name is fewest single-letter edits away. */
  static EngineOption nearest(String name) {
    String dashed = name.replace('_', '-').toLowerCase(Locale.ROOT);
    EngineOption best = MODEL;
    int bestDistance = Integer.MAX_VALUE;
    for (EngineOption option : values()) {
      int distance = editDistance(dashed, option.optionName);
      if (distance < bestDistance) {
        bestDistance = distance;
        best = option;
      }
    }
    return best;
  }

  private static int editDistance(String a, String b) {
    int[] row = new int[b.length() + 1];
    Arrays.setAll(row, j -> j);
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int above = row[j];
        int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        row[j] = Math.min(replaced, Math.min(above, row[j - 1]) + 1);
        diagonal = above;
      }
    }
    return row[b.length()];
  }

  /**
   * Reads a value.
   *
   * @return an object of {@link Type#javaType()}
   * @throws ConfigurationException if the text is no such value
   */
  public Object parse(String text) {
    String value = text.strip();
    if (value.isEmpty() && (type == Type.PATH || type == Type.STRING)) {
      throw new ConfigurationException(optionName, "must not be empty");
    }
    try {
      return switch (type) {
        case STRING -> value;
        case WORD -> word(value);
        case PATH -> Path.of(value);
        case COUNT -> count(value);
        case INTEGER -> Long.parseLong(value);
        case SWITCH -> truth(value);
        case NUMBER -> number(value);
        case MEMORY -> MemorySize.parse(value);
        case BUCKETS -> HistogramBuckets.parse(value);
        case SPECULATION -> SpeculativeConfig.parse(value);
        case DURATION -> duration(value);
      };
    } catch (NumberFormatException e) {
      throw new ConfigurationException(optionName, "expected a whole number, found '" + text + "'");
    } catch (DateTimeParseException e) {
      throw new ConfigurationException(optionName, "expected a time such as 10s or 500ms, found '" + text + "'");
    } catch (InvalidPathException e) {
      throw new ConfigurationException(optionName, "no file name: '" + text + "'");
    } catch (IllegalArgumentException e) {
      throw new ConfigurationException(optionName, String.valueOf(e.getMessage()));
    }
  }

  private String word(String value) {
    if (!words.contains(value)) {
      throw new IllegalArgumentException("expected one of " + String.join(", ", words) + ", found '" + value + "'");
    }
    return value;
  }

  private static Integer count(String value) {
    long number = WholeNumber.parse(value);
    if (number < 0 || number > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("expected 0 to " + Integer.MAX_VALUE + ", found '" + value + "'");
    }
    return (int) number;
  }

  private static Double number(String value) {
    try {
      return Double.parseDouble(value);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("expected a number, found '" + value + "'", e);
    }
  }

  private static Boolean truth(String value) {
    return switch (value.toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw new IllegalArgumentException("expected true or false, found '" + value + "'");
    };
  }

  private static Duration duration(String value) {
    Duration time;
    if (value.endsWith("ms")) {
      time = Duration.ofMillis(Long.parseLong(value.substring(0, value.length() - 2).strip()));
    } else {
      String unit = Character.isDigit(value.isEmpty() ? ' ' : value.charAt(value.length() - 1)) ? "S" : "";
      time = Duration.parse("PT" + value.toUpperCase(Locale.ROOT) + unit);
    }
    if (time.isNegative()) {
      throw new IllegalArgumentException("a time below 0: '" + value + "'");
    }
    return time;
  }
}
