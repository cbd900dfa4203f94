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
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Probabilities of the reference sampler for given logits and parameters: ours keeps the same ids with the same. */
class SamplerOracleTest {
  /** Parameters that requests cannot have yet; cases that use one are left out. */
  private static final Map<String, String> OTHER_PARAMETERS =
      Map.of(
          "allowed_token_ids", "not a request parameter yet",
          "bad_words_token_ids", "not a request parameter yet",
          "logit_bias", "not a request parameter yet",
          "repetition_penalty", "not a request parameter yet",
          "frequency_penalty", "not a request parameter yet",
          "presence_penalty", "not a request parameter yet");

  private static JsonNode load() throws IOException {
    try (InputStream in = SamplerOracleTest.class.getResourceAsStream("/sampling/sampler.json.gz")) {
      return new ObjectMapper().readTree(new GZIPInputStream(Objects.requireNonNull(in)));
    }
  }

  @TestFactory
  Stream<DynamicTest> keepsTheSameIds() throws IOException {
    Map<String, Integer> leftOut = new TreeMap<>();
    Stream.Builder<DynamicTest> tests = Stream.builder();
    int count = 0;
    for (JsonNode oracle : load().get("cases")) {
      String other =
          OTHER_PARAMETERS.keySet().stream().filter(oracle.get("params")::has).sorted().findFirst().orElse("");
      if (other.isEmpty()) {
        String name = oracle.get("name").asText() + " " + oracle.get("params");
        tests.add(DynamicTest.dynamicTest(name, () -> check(oracle)));
        count++;
      } else {
        leftOut.merge(other, 1, Integer::sum);
      }
    }
    System.out.println("sampler cases: " + count + " checked, left out by parameter: " + leftOut);
    return tests.build();
  }

  private static void check(JsonNode oracle) {
    JsonNode params = oracle.get("params");
    float[] logits = new float[oracle.get("logits").size()];
    for (int i = 0; i < logits.length; i++) {
      // Infinities are words in the file.
      logits[i] = Float.parseFloat(oracle.get("logits").get(i).asText());
    }
    float temperature = (float) params.path("temperature").asDouble(1);
    Set<Integer> stops = new HashSet<>();
    params.path("all_stop_token_ids").forEach(id -> stops.add(id.asInt()));
    int minTokens = params.path("min_tokens").asInt(0);
    SamplingParams.Builder builder =
        SamplingParams.builder().temperature(Math.min(temperature, 2)).maxTokens(100).minTokens(minTokens);
    Sampler sampler = new Sampler(logits.length);
    MemorySegment row = MemorySegment.ofArray(logits);
    int outputs = oracle.get("output_ids").size();
    sampler.sample(row, 0, new SamplerState(builder.logprobs(5).build(), stops, 1), outputs);
    checkLogprobs(oracle.get("raw_logprobs_top5"), Objects.requireNonNull(sampler.logprobs()));
    int id = sampler.sample(row, 0, new SamplerState(builder.logprobs(-1).build(), stops, 1), outputs);
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
