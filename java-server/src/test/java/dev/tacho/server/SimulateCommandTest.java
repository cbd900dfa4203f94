package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

class SimulateCommandTest {
  private static final String CSV =
      """
      arrival,prompt_tokens,output_tokens,prefix_group
      0,20,3,
      0.5,40,1,a

      1.5,40,1,a
      """;

  @TempDir private Path folder;

  private record Result(int code, String out, String err) {}

  private Result simulate(String trace, String... more) throws IOException {
    return simulateWith("11", trace, more);
  }

  private Result simulateWith(String blocks, String trace, String... more) throws IOException {
    List<String> args = new ArrayList<>(List.of("simulate", "--num-gpu-blocks-override", blocks));
    args.addAll(List.of(more));
    args.add(Files.writeString(folder.resolve("trace"), trace).toString());
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    CommandLine line = Main.commandLine();
    line.setOut(new PrintWriter(out));
    line.setErr(new PrintWriter(err));
    int code = line.execute(args.toArray(String[]::new));
    return new Result(code, out.toString(), err.toString());
  }

  @Test
  void figuresOfATraceThatCanBeToldByHand() throws IOException {
    Result result = simulate(CSV, "--cost", "step=1000,prefill_token=10,decode_token=100", "--json");
    assertThat(result.code()).as(result.err()).isZero();
    JsonNode json = new ObjectMapper().readTree(result.out());
    assertThat(json.get("requests").asInt()).isEqualTo(3);
    assertThat(json.get("prompt_tokens").asInt()).isEqualTo(100);
    // Two whole blocks of the third prompt; its last 8 tokens are computed.
    assertThat(json.get("cached_tokens").asInt()).isEqualTo(32);
    assertThat(json.get("prefill_tokens").asInt()).isEqualTo(68);
    assertThat(json.at("/time_to_first_token_seconds/max").asDouble()).isEqualTo(0.0014);
    assertThat(json.at("/end_to_end_seconds/max").asDouble()).isEqualTo(0.0034);
    assertThat(json.at("/inter_token_latency_seconds/count").asInt()).isEqualTo(2);
    assertThat(json.get("seconds").asDouble()).isEqualTo(1.50108);
    assertThat(json.get("preemptions").asInt()).isZero();
  }

  @Test
  void tableAndCostFileAndJsonLines() throws IOException {
    Path cost = Files.writeString(folder.resolve("cost.json"), "{\"step\": 1000, \"prefill_token\": 10}");
    String lines =
        """
        {"arrival": 0, "prompt_tokens": 20, "output_tokens": 3}
        {"arrival": 0.5, "prompt_tokens": 40, "output_tokens": 1, "prefix_group": "a", "prefix_tokens": 16}
        {"arrival": 1.5, "prompt_tokens": 40, "output_tokens": 1, "prefix_group": "a", "prefix_tokens": 16}
        """;
    Result result = simulate(lines, "--cost-file", cost.toString());
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out()).contains("100 prompt (16 of them cached), 5 output");
    assertThat(result.out()).containsPattern("preemptions +0\n").containsPattern("TTFT +0\\.0013 +0\\.0012 ");
    assertThat(result.err()).contains("3 requests simulated");
  }

  @ParameterizedTest(name = "{0}: {1}")
  @CsvSource(
      delimiter = '|',
      value = {
        "0,20,3,,9 | line 5: 5 values for 4 columns",
        "0,20,x, | line 5: output_tokens is no whole number below 2^31: 'x'",
        "2,0,3, | line 5: prompt_tokens must be at least 1, is 0",
        "0.1,5,3, | line 5: arrival goes back: 0.1 after 0.5",
        "soon,5,3, | line 5: arrival is no number of seconds: 'soon'",
        "NaN,5,3, | line 5: arrival must be in [0, 1e9] seconds, is NaN",
        "1,,3, | line 5: prompt_tokens is missing",
        "1,100,100, | request 3: "
      })
  void badRowIsNamed(String row, String problem) throws IOException {
    Result result = simulate(CSV.replaceFirst("(?m)^1\\.5.*$", row).replace("\n\n", "\n \n"), "--cost", "step=1");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err()).contains(problem).hasLineCount(1);
    assertThat(result.out()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"{%s, \"arrival\": 1}", "{%s} {}"})
  void aLineOfMoreThanOneObjectIsNamed(String line) throws IOException {
    String request = "\"arrival\": 0, \"prompt_tokens\": 20, \"output_tokens\": 3";
    Result result = simulate(line.formatted(request), "--cost", "step=1");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err()).contains("line 1: no JSON").hasLineCount(1);
  }

  @ParameterizedTest
  @CsvSource({"2147483647, at most 134217726", "134217726, do not fit into the heap"})
  void blocksThatNobodyCanCountAreAnError(String blocks, String problem) throws IOException {
    Result result = simulateWith(blocks, CSV, "--cost", "step=1");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err()).contains(blocks + " blocks").contains(problem).hasLineCount(1);
  }

  @Test
  void sequencesMayBeAsManyAsAnIntCounts() throws IOException {
    String most = Integer.toString(Integer.MAX_VALUE);
    Result result = simulate(CSV, "--cost", "step=1", "--max-num-seqs", most, "--max-num-batched-tokens", most);
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.err()).contains("3 requests simulated");
  }

  @Test
  void wrongNamesAndCostsAreErrors() throws IOException {
    assertThat(simulate("arrival,prompt_tokens\n1,2\n", "--cost", "step=1").err())
        .contains("line 1: the column 'output_tokens' is missing");
    assertThat(simulate("arrival,prompt\n1,2\n", "--cost", "step=1").err()).contains("'prompt' is none of arrival");
    assertThat(simulate("{\"arrival\": 1}\n", "--cost", "step=1").err()).contains("line 1: prompt_tokens is missing");
    assertThat(simulate("{\"arrival\"\n", "--cost", "step=1").err()).contains("line 1: no JSON");
    assertThat(simulate("\n", "--cost", "step=1").err()).contains("has no request");
    assertThat(simulate(CSV, "--cost", "steps=1").err()).contains("'steps' is none of step, prefill_token");
    assertThat(simulate(CSV, "--cost", "step=-1").err()).contains("step must be in [0, 1e9]");
    assertThat(simulate(CSV, "--cost", "decode_token=1").err()).contains("must cost time");
    assertThat(simulate(CSV).code()).isEqualTo(2);
  }
}
