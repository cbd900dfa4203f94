package dev.tacho.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.engine.GoldenFile;
import java.util.Arrays;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Drafts that the reference made of given tokens: ours are the same. */
class NgramProposeGoldenTest {
  @TestFactory
  Stream<DynamicTest> proposesTheSame() {
    return GoldenFile.stats("ngram_propose")
        .map(golden -> DynamicTest.dynamicTest(golden.get("id").asText(), () -> check(golden)));
  }

  private static void check(JsonNode golden) {
    int[] tokens = ids(golden.get("tokens"));
    int[] drafts = new int[golden.get("k").asInt()];
    NgramProposer proposer =
        new NgramProposer(
            golden.get("min_n").asInt(), golden.get("max_n").asInt(), golden.get("max_model_len").asInt());
    int count = proposer.propose(tokens, tokens.length, drafts);
    assertThat(Arrays.copyOf(drafts, count)).containsExactly(ids(golden.get("expected")));
    // The second time the scratch is not empty, and there is room behind the tokens.
    int[] longer = Arrays.copyOf(tokens, tokens.length + 7);
    assertThat(proposer.propose(longer, tokens.length, drafts)).isEqualTo(count);
  }

  private static int[] ids(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false).mapToInt(JsonNode::asInt).toArray();
  }
}
