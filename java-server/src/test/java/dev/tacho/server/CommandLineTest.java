package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tacho.engine.EngineOption;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

class CommandLineTest {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private record Result(int code, String out, String err) {}

  private static Result tacho(String... args) {
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    CommandLine line = Main.commandLine();
    line.setOut(new PrintWriter(out));
    line.setErr(new PrintWriter(err));
    int code = line.execute(args);
    return new Result(code, out.toString(), err.toString());
  }

  private static Result generate(String... more) {
    return tacho(
        Stream.concat(Stream.of("generate", "--model", BundledModel.FILE.toString()), Stream.of(more))
            .toArray(String[]::new));
  }

  @Test
  void aNameWithControlCharactersStaysOneLine() {
    Result result = tacho("generate", "--model", "no\nsuch\u001b[31m.gguf", "--prompt", "a");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err().strip()).contains("no\\u000asuch\\u001b[31m.gguf").hasLineCount(1);
  }

  static Stream<JsonNode> goldenPrompts() throws IOException {
    Path file = BundledModel.FILE.resolveSibling("golden.json");
    return MAPPER.readTree(file.toFile()).get("prompts").valueStream();
  }

  @ParameterizedTest
  @MethodSource("goldenPrompts")
  void generateGivesTheReferenceIds(JsonNode golden) throws IOException {
    int count = golden.get("greedy_ids").size();
    String[] common = {
      "--max-tokens", Integer.toString(count), "--temperature", "0", "--seed", "1", "--ignore-eos", "--json"
    };
    Stream<String> prompt = Stream.of("--prompt", golden.get("prompt").asText());
    Result byText = generate(Stream.concat(prompt, Stream.of(common)).toArray(String[]::new));
    assertThat(byText.code()).as(byText.err()).isZero();
    JsonNode json = MAPPER.readTree(byText.out());
    assertThat(json.get("prompt_ids")).isEqualTo(golden.get("prompt_ids"));
    assertThat(json.get("output_ids")).isEqualTo(golden.get("greedy_ids"));
    assertThat(json.get("finish_reason").asText()).isEqualTo("length");
    assertThat(json.get("logprobs")).isEmpty();
    assertThat(json.at("/timings/end_to_end_seconds").asDouble()).isPositive();
  }

  @Test
  void promptIdsAreTakenAsTheyAreAndLogprobsAreReported() throws IOException {
    Result result =
        generate("--prompt-ids", "1,5,6", "--max-tokens", "3", "--temperature", "0", "--logprobs", "4", "--json");
    assertThat(result.code()).as(result.err()).isZero();
    JsonNode json = MAPPER.readTree(result.out());
    assertThat(json.get("prompt_ids").toString()).isEqualTo("[1,5,6]");
    assertThat(json.get("logprobs")).hasSameSizeAs(json.get("output_ids"));
    for (int i = 0; i < json.get("output_ids").size(); i++) {
      JsonNode best = json.get("logprobs").get(i);
      assertThat(best).hasSize(4);
      assertThat(best.get(0).get("id")).isEqualTo(json.get("output_ids").get(i));
      assertThat(best.get(0).get("logprob").asDouble()).isGreaterThanOrEqualTo(best.get(1).get("logprob").asDouble());
    }
  }

  @Test
  void generatePrintsTheTextAndASummary() {
    Result result = generate("--prompt", "One day", "--max-tokens", "8", "--temperature", "0");
    assertThat(result.code()).isZero();
    assertThat(result.out().strip()).isNotEmpty();
    assertThat(result.err()).contains("8 generated").contains("length");
  }

  @ParameterizedTest
  @ValueSource(strings = {"scalar", "vector", "native"})
  void kernelsAreThoseAskedFor(String kernels) throws IOException {
    Result result =
        generate("--prompt", "One day", "--max-tokens", "4", "--temperature", "0", "--json", "--kernels", kernels);
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(MAPPER.readTree(result.out()).get("output_ids")).hasSize(4);
  }

  @Test
  void userCase24_forcedCudaWithoutADeviceIsAnErrorWithTheReason() {
    Result result = generate("--prompt", "One day", "--kernels", "cuda");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err()).contains("cuda").hasLineCount(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "generate --prompt a --no-such-option",
        "generate --model x",
        "generate --model x --prompt a --prompt-ids 1",
        "generate --model x --prompt a --max-tokens many",
        "generate --model x --prompt a --kernels fast",
        "generate --prompt a",
        "serve --model x --port 70000",
        "serve --model x --max-num-seqs 0",
        "serve --model x --enable-prefix-caching --no-enable-prefix-caching",
        "nothing",
        ""
      })
  void wrongUsageIsCode2WithOneClearMessage(String words) {
    Result result = tacho(words.isEmpty() ? new String[0] : words.split(" "));
    assertThat(result.code()).as(result.err()).isEqualTo(2);
    assertThat(result.err()).startsWith("tacho: ").doesNotContain("Exception");
  }

  @ParameterizedTest
  @CsvSource({
    "--enable-prefix-caching, true",
    "--enable-prefix-caching=false, false",
    "--no-enable-prefix-caching, false",
    "--no-enable-prefix-caching=false, true"
  })
  void theOppositeOfASwitchMayBeDeniedToo(String word, boolean enabled) {
    CommandLine.ParseResult parsed = Main.commandLine().parseArgs("serve", "--model", "x", word).subcommand();
    assertThat(EngineOptions.config(parsed, Map.of()).enablePrefixCaching()).isEqualTo(enabled);
  }

  @Test
  void aMissingModelFileIsNamed(@TempDir Path dir) {
    Path file = dir.resolve("none.gguf");
    Result result = tacho("generate", "--model", file.toString(), "--prompt", "a");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err()).contains(file.toString()).hasLineCount(1);
  }

  @Test
  void aTruncatedModelFileIsNamed(@TempDir Path dir) throws IOException {
    byte[] whole = Files.readAllBytes(BundledModel.FILE);
    Path file = Files.write(dir.resolve("cut.gguf"), Arrays.copyOf(whole, whole.length / 2));
    Result result = tacho("generate", "--model", file.toString(), "--prompt", "a");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err()).contains(file.toString()).hasLineCount(1);
  }

  @Test
  void aPromptLongerThanTheContextIsCode2() {
    Result result = generate("--prompt-ids", "5" + ",5".repeat(600), "--max-model-len", "64");
    assertThat(result.code()).isEqualTo(2);
    assertThat(result.err()).contains("601", "64");
  }

  @Test
  void serveOnAPortInUseIsCode1() throws IOException {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Result result =
          tacho("serve", "--model", BundledModel.FILE.toString(), "--port", Integer.toString(taken.getLocalPort()));
      assertThat(result.code()).isEqualTo(1);
      assertThat(result.err()).contains(Integer.toString(taken.getLocalPort())).contains("--port");
    }
  }

  @Test
  void aPortInUseIsFoundBeforeTheModelIsLoaded() throws IOException {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Result result = tacho("serve", "--model", "none.gguf", "--port", Integer.toString(taken.getLocalPort()));
      assertThat(result.code()).isEqualTo(1);
      assertThat(result.err()).contains("cannot listen").doesNotContain("none.gguf");
    }
  }

  @Test
  void helpNamesEveryEngineOption() {
    String help = tacho("serve", "--help").out();
    for (EngineOption option : EnumSet.allOf(EngineOption.class)) {
      assertThat(help).contains("--" + option.optionName());
    }
  }

  @Test
  void doctorSaysWhatThisMachineGives() throws IOException {
    Result json = tacho("doctor", "--json");
    assertThat(json.code()).isZero();
    JsonNode report = MAPPER.readTree(json.out());
    assertThat(report.at("/jdk/version").asText()).startsWith(Integer.toString(Runtime.version().feature()));
    assertThat(report.get("kernels")).hasSize(4);
    assertThat(report.get("chosen").asText()).startsWith("native");
    Result text = tacho("doctor");
    assertThat(text.code()).isZero();
    assertThat(text.out()).contains("native", "vector", "scalar", "cuda", "JDK");
  }

  @Test
  void benchPrintsAJsonObjectForEachTestAndThenForEachOperator(@TempDir Path directory) throws IOException {
    Path plot = directory.resolve("plot.svg");
    Result result =
        tacho(
            "bench", "--model", BundledModel.FILE.toString(), "--prompt", "20", "--decode", "3", "--depth", "5",
            "--batch", "1,4", "--repeat", "2", "--warm", "1", "--threads", "1", "--json", "--plot", plot.toString());
    assertThat(result.code()).isZero();
    List<String> lines = result.out().lines().toList();
    String[] tests = {"prefill", "decode", "batched_decode"};
    int[] batches = {1, 1, 4};
    for (int i = 0; i < tests.length; i++) {
      JsonNode line = MAPPER.readTree(lines.get(i));
      assertThat(line.get("test").textValue()).isEqualTo(tests[i]);
      assertThat(line.get("batch").intValue()).isEqualTo(batches[i]);
      assertThat(line.get("threads").intValue()).isEqualTo(1);
      assertThat(line.get("type").textValue()).isEqualTo("F16");
      assertThat(line.get("tokens_per_second").doubleValue()).isPositive().isFinite();
      assertThat(line.get("spread").doubleValue()).isNotNegative();
    }
    Set<String> operators = new TreeSet<>();
    for (int i = tests.length; i < lines.size(); i++) {
      JsonNode line = MAPPER.readTree(lines.get(i));
      assertThat(tests).contains(line.get("phase").textValue());
      operators.add(line.get("operator").textValue());
      assertThat(line.get("share_of_peak").doubleValue()).as(lines.get(i)).isPositive().isFinite();
      // Of one worker.
      double gflops = line.get("flops").doubleValue() / line.get("nanos").longValue();
      assertThat(line.get("gflops").doubleValue()).isEqualTo(gflops);
    }
    assertThat(operators).contains("attention", "embedding_lookup", "kv_write", "matmul", "rms_norm", "rope");
    assertThat(Files.readString(plot)).startsWith("<svg ").contains("tacho-tales, F16", "decode of 1", "rms_norm");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--prompt=-1", "--decode=-1", "--repeat=0", "--warm=-1", "--batch=1,0", "--batch=129", "--depth=2147483647",
        "--plot=no/such.svg"
      })
  void benchRefusesSizesOutOfRange(String option) {
    Result result = tacho("bench", "--model", BundledModel.FILE.toString(), option);
    assertThat(result.code()).isEqualTo(2);
    assertThat(result.err()).contains(option.substring(0, option.indexOf('=')));
  }

  @ParameterizedTest
  @CsvSource({"0, 3, decode", "20, 0, prefill"})
  void benchLeavesATestOutThatHasNoTokens(String prompt, String decode, String left) throws IOException {
    Result result =
        tacho(
            "bench", "--model", BundledModel.FILE.toString(), "--prompt", prompt, "--decode", decode, "--depth", "5",
            "--batch", "1", "--repeat", "1", "--warm", "0", "--threads", "1", "--json");
    assertThat(result.code()).isZero();
    Set<String> tests = new TreeSet<>();
    for (String line : result.out().lines().toList()) {
      JsonNode json = MAPPER.readTree(line);
      tests.add(json.path("test").asText(json.path("phase").asText()));
    }
    assertThat(tests).containsExactly(left);
  }

  @Test
  void benchRefusesToMeasureNothing() {
    Result result = tacho("bench", "--model", BundledModel.FILE.toString(), "--prompt=0", "--decode=0");
    assertThat(result.code()).isEqualTo(2);
    assertThat(result.err()).contains("--prompt and --decode are both 0");
  }

  @Test
  void benchResultIsTheMedianAndItsSpread() {
    assertThat(BenchResult.of("decode", 1, new double[] {10, 30, 20})).isEqualTo(new BenchResult("decode", 1, 20, 1));
    assertThat(BenchResult.of("decode", 1, new double[] {10, 30, 20, 22}))
        .isEqualTo(new BenchResult("decode", 1, 21, 20.0 / 21));
  }

  @Test
  void aCommandThatIsNamedComesWithoutTheOthers() {
    Set<String> all = Main.commandLine().getSubcommands().keySet();
    assertThat(all).containsExactlyInAnyOrder("serve", "generate", "bench", "simulate", "doctor", "demo");
    for (String name : all) {
      assertThat(Main.commandLine(name, "--help").getSubcommands().keySet()).containsExactly(name);
    }
    for (String other : List.of("--help", "serv", "")) {
      assertThat(Main.commandLine(other).getSubcommands().keySet()).as(other).isEqualTo(all);
    }
  }

  @Test
  void whatIsLoadedAheadIsForCommandsThatAreThere() {
    assertThat(Main.commandLine().getSubcommands().keySet()).containsAll(Main.OPEN_AN_ENGINE);
  }
}
