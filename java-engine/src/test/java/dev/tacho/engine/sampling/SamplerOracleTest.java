package dev.tacho.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tacho.engine.SamplingParams;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Probabilities of the reference sampler for given logits and parameters: ours keeps the same ids with the same. */
class SamplerOracleTest {
  private static JsonNode load() throws IOException {
    try (InputStream in = SamplerOracleTest.class.getResourceAsStream("/sampling/sampler.json.gz")) {
      return new ObjectMapper().readTree(new GZIPInputStream(Objects.requireNonNull(in)));
    }
  }

  @TestFactory
  Stream<DynamicTest> keepsTheSameIds() throws IOException {
    return elements(load().get("cases"))
        .map(oracle -> DynamicTest.dynamicTest(oracle.get("name").asText(), () -> check(oracle)));
  }

  private static void check(JsonNode oracle) {
    JsonNode params = oracle.get("params");
    float[] logits = new float[oracle.get("logits").size()];
    for (int i = 0; i < logits.length; i++) {
      // Infinities are words in the file.
      logits[i] = Float.parseFloat(oracle.get("logits").get(i).asText());
    }
    float temperature = (float) params.path("temperature").asDouble(1);
    SamplingParams.Builder builder = params(params).temperature(Math.min(temperature, 2));
    Sampler sampler = new Sampler(logits.length);
    MemorySegment row = MemorySegment.ofArray(logits);
    int[] outputs = ints(oracle.get("output_ids"));
    sampler.sample(row, 0, state(builder.logprobs(5).build(), oracle), outputs.length);
    checkLogprobs(oracle.get("raw_logprobs_top5"), Objects.requireNonNull(sampler.logprobs()));
    int id = sampler.sample(row, 0, state(builder.logprobs(-1).build(), oracle), outputs.length);
    if (temperature < SamplingParams.GREEDY_BELOW) {
      int[] best = elements(oracle.get("argmax")).mapToInt(JsonNode::asInt).sorted().toArray();
      assertThat(id).isEqualTo(best[0]);
    } else {
      Candidates kept =
          sampler.distribution(
              temperature,
              (float) params.path("min_p").asDouble(0),
              params.path("top_k").asInt(0),
              (float) params.path("top_p").asDouble(1));
      checkDistribution(oracle, kept);
    }
  }

  private static SamplingParams.Builder params(JsonNode params) {
    Map<Integer, Float> bias = new HashMap<>();
    params.path("logit_bias").forEach(b -> bias.put(b.get(0).asInt(), (float) b.get(1).asDouble()));
    return SamplingParams.builder()
        .maxTokens(100)
        .minTokens(params.path("min_tokens").asInt(0))
        .presencePenalty(params.path("presence_penalty").asDouble(0))
        .frequencyPenalty(params.path("frequency_penalty").asDouble(0))
        .repetitionPenalty(params.path("repetition_penalty").asDouble(1))
        .logitBias(bias)
        .allowedTokenIds(elements(params.path("allowed_token_ids")).map(JsonNode::asInt).toList());
  }

  private static SamplerState state(SamplingParams sampling, JsonNode oracle) {
    JsonNode params = oracle.get("params");
    Set<Integer> stops = new HashSet<>();
    params.path("all_stop_token_ids").forEach(id -> stops.add(id.asInt()));
    int[][] badWords =
        elements(params.path("bad_words_token_ids")).map(SamplerOracleTest::ints).toArray(int[][]::new);
    SamplerState state = new SamplerState(sampling, stops, 1, ints(oracle.get("prompt_ids")), badWords);
    for (int id : ints(oracle.get("output_ids"))) {
      state.processors().chosen(id);
    }
    return state;
  }

  private static int[] ints(JsonNode array) {
    return elements(array).mapToInt(JsonNode::asInt).toArray();
  }

  private static Stream<JsonNode> elements(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false);
  }

  private static void checkDistribution(JsonNode oracle, Candidates kept) {
    double tolerance = oracle.get("name").asText().startsWith("huge") ? 1e-4 : 3e-6;
    assertThat(kept.size()).isEqualTo(oracle.get("kept").asInt());
    Map<Integer, Double> ours = new LinkedHashMap<>();
    for (int i = 0; i < kept.size(); i++) {
      ours.put(kept.id(i), kept.probability(i));
    }
    if (oracle.path("tie_at_cut").asBoolean()) {
      double[] sorted = ours.values().stream().mapToDouble(p -> p).sorted().toArray();
      double[] expected =
          elements(oracle.get("probs")).mapToDouble(p -> p.get(1).asDouble()).sorted().toArray();
      assertThat(sorted).containsExactly(expected, within(tolerance));
      return;
    }
    for (JsonNode p : oracle.get("probs")) {
      assertThat(ours).containsKey(p.get(0).asInt());
      assertThat(ours.get(p.get(0).asInt())).isCloseTo(p.get(1).asDouble(), within(tolerance));
    }
  }

  private static void checkLogprobs(JsonNode expected, TokenLogprobs ours) {
    assertThat(ours.topIds()).hasSize(expected.size());
    for (int i = 0; i < expected.size(); i++) {
      double logprob = expected.get(i).get(1).asDouble();
      assertThat((double) ours.topLogprobs()[i]).isCloseTo(logprob, within(1e-4 + Math.abs(logprob) * 1e-6));
    }
    assertThat(Arrays.stream(ours.topIds()).distinct().count()).isEqualTo(expected.size());
  }
}
