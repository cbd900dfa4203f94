package dev.tacho.metrics.prometheus;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.zip.CRC32;

/**
 * An {@link EngineFamilies} as text, for the file of a page: lines of {@code key=value}, with backslashes and line ends
 * of values escaped. From it and the catalog another process knows what each value of the page is.
 */
final class FamiliesText {
  private static final String CATALOG = "catalog";
  private static final String MODEL_NAME = "model_name";
  private static final String ENGINE = "engine";
  private static final String MAX_MODEL_LEN = "max_model_len";
  private static final String GATES = "gates";
  private static final String SPECULATIVE_TOKENS = "speculative_tokens";
  private static final String MAX_ADAPTERS = "max_adapters";
  private static final String WORKERS = "workers";
  private static final String HIDDEN_OF_VERSION = "hidden_of_version";
  private static final String OFFLOAD_LABEL = "offload.label.";
  private static final String OFFLOAD_TIER = "offload.tier.";
  private static final String CACHE_CONFIG = "cache_config.";
  private static final String BUCKETS = "buckets.";

  private FamiliesText() {}

  /** Writes. */
  static String write(EngineFamilies families) {
    StringBuilder text = new StringBuilder();
    put(text, CATALOG, catalog());
    put(text, MODEL_NAME, families.modelName());
    put(text, ENGINE, families.engineIndex());
    put(text, MAX_MODEL_LEN, families.maxModelLen());
    put(text, GATES, String.join(",", families.gates().stream().map(Enum::name).toList()));
    put(text, SPECULATIVE_TOKENS, families.speculativeTokens());
    put(text, MAX_ADAPTERS, families.maxAdapters());
    put(text, WORKERS, families.workers());
    String hidden = families.hiddenOfVersion();
    if (hidden != null) {
      put(text, HIDDEN_OF_VERSION, hidden);
    }
    new TreeMap<>(families.offload().labels()).forEach((name, value) -> put(text, OFFLOAD_LABEL + name, value));
    for (int i = 0; i < families.offload().tiers().size(); i++) {
      put(text, OFFLOAD_TIER + i, families.offload().tiers().get(i));
    }
    families.cacheConfig().forEach((name, value) -> put(text, CACHE_CONFIG + name, value));
    new TreeMap<>(families.buckets().replaced()).forEach((name, bounds) ->
        put(text, BUCKETS + name, String.join(",", bounds.stream().map(String::valueOf).toList())));
    return text.toString();
  }

  /**
   * Reads.
   *
   * @throws IllegalArgumentException if it was written by another version, or is damaged
   */
  static EngineFamilies read(String text) {
    Map<String, String> values = new LinkedHashMap<>();
    for (String line : text.split("\n", -1)) {
      int equals = line.indexOf('=');
      if (equals > 0) {
        values.put(line.substring(0, equals), line.substring(equals + 1).translateEscapes());
      }
    }
    if (!catalog().equals(values.get(CATALOG))) {
      throw new IllegalArgumentException("the page was written by a version with other families");
    }
    EngineFamilies.Builder families = EngineFamilies.builder(value(values, MODEL_NAME),
        Integer.parseInt(value(values, ENGINE)), Integer.parseInt(value(values, MAX_MODEL_LEN)));
    for (String gate : value(values, GATES).split(",", -1)) {
      families.with(MetricFamily.Gate.valueOf(gate), true);
    }
    Map<String, String> cacheConfig = new LinkedHashMap<>();
    Map<String, String> offloadLabels = new LinkedHashMap<>();
    List<String> offloadTiers = new ArrayList<>();
    Map<String, List<String>> buckets = new LinkedHashMap<>();
    values.forEach((key, value) -> {
      if (key.startsWith(CACHE_CONFIG)) {
        cacheConfig.put(key.substring(CACHE_CONFIG.length()), value);
      } else if (key.startsWith(OFFLOAD_LABEL)) {
        offloadLabels.put(key.substring(OFFLOAD_LABEL.length()), value);
      } else if (key.startsWith(OFFLOAD_TIER)) {
        offloadTiers.add(value);
      } else if (key.startsWith(BUCKETS)) {
        buckets.put(key.substring(BUCKETS.length()), Arrays.asList(value.split(",", -1)));
      }
    });
    return families.speculativeTokens(Integer.parseInt(value(values, SPECULATIVE_TOKENS)))
        .maxAdapters(Integer.parseInt(value(values, MAX_ADAPTERS))).cacheConfig(cacheConfig)
        .workers(Integer.parseInt(value(values, WORKERS)))
        .offload(new OffloadDescription(offloadLabels, offloadTiers, Set.of()))
        .showHiddenMetricsForVersion(values.get(HIDDEN_OF_VERSION))
        .buckets(CustomBuckets.of(buckets)).build();
  }

  private static String value(Map<String, String> values, String key) {
    String value = values.get(key);
    if (value == null) {
      throw new IllegalArgumentException("the page does not say its " + key);
    }
    return value;
  }

  private static void put(StringBuilder text, String key, Object value) {
    text.append(key).append('=')
        .append(value.toString().replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")).append('\n');
  }

  /** A number that changes with anything that decides where a value lies. */
  private static String catalog() {
    List<String> rows = new ArrayList<>();
    for (MetricFamily family : MetricCatalog.families()) {
      rows.add(family.name() + family.type() + family.gate() + family.labels() + family.values() + family.buckets());
    }
    CRC32 sum = new CRC32();
    sum.update(rows.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8));
    return Long.toHexString(sum.getValue());
  }
}
