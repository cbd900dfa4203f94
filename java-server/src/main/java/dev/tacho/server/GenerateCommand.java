package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.Completion;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import dev.tacho.engine.GenerationHandle;
import dev.tacho.engine.GenerationRequest;
import dev.tacho.engine.PositionLogprobs;
import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.Timings;
import dev.tacho.engine.TokenDelta;
import dev.tacho.engine.TokenLogprob;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code tacho generate}: one completion on the terminal. */
@Command(
    name = "generate",
    description = "Completes one prompt and prints the text as it comes, or everything as JSON.",
    sortOptions = false)
final class GenerateCommand implements Callable<Integer> {
  @Spec private CommandSpec spec;

  /** One of the two. */
  static final class Prompt {
    @Option(names = {"--prompt", "-p"}, paramLabel = "TEXT", description = "the prompt")
    private @Nullable String text;

    @Option(
        names = "--prompt-ids",
        paramLabel = "ID",
        split = ",",
        description = "the prompt as token ids, taken as they are: 1,2,3")
    private int @Nullable [] ids;
  }

  @ArgGroup(multiplicity = "1")
  private Prompt prompt = new Prompt();

  @Option(
      names = {"--max-tokens", "-n"},
      paramLabel = "N",
      description = "tokens to generate at most (default ${DEFAULT-VALUE})")
  private int maxTokens = 128;

  @Option(names = "--temperature", paramLabel = "T", description = "0 is greedy (default ${DEFAULT-VALUE})")
  private double temperature = 0.7;

  @Option(names = "--top-k", paramLabel = "K", description = "keep the K most probable tokens; 0 keeps all")
  private int topK = 0;

  @Option(names = "--top-p", paramLabel = "P", description = "keep tokens up to this sum of probabilities")
  private double topP = 1;

  @Option(names = "--min-p", paramLabel = "P", description = "drop tokens below this share of the best one")
  private double minP = 0;

  @Option(names = "--seed", paramLabel = "S", description = "of the random numbers; without it each run differs")
  private @Nullable Long seed;

  @Option(names = "--stop", paramLabel = "TEXT", description = "ends the text; may be given several times")
  private List<String> stop = List.of();

  @Option(names = "--ignore-eos", description = "an end-of-text token does not end the text")
  private boolean ignoreEos;

  @Option(names = "--logprobs", paramLabel = "K", description = "with --json: the K best tokens of each position")
  private int logprobs = -1;

  @Option(names = "--json", description = "print one JSON object instead of the text")
  private boolean json;

  @Override
  public Integer call() {
    SamplingParams.Builder sampling =
        SamplingParams.builder()
            .maxTokens(maxTokens)
            .temperature(temperature)
            .topK(topK)
            .topP(topP)
            .minP(minP)
            .stop(stop)
            .ignoreEos(ignoreEos)
            .logprobs(logprobs);
    if (seed != null) {
      sampling.seed(seed);
    }
    GenerationRequest.Builder request = GenerationRequest.builder().sampling(sampling.build());
    if (prompt.text != null) {
      request.prompt(prompt.text);
    } else if (prompt.ids != null) {
      request.prompt(prompt.ids);
    }
    EngineConfig config = EngineOptions.config(spec.commandLine().getParseResult(), System.getenv());
    PrintWriter out = spec.commandLine().getOut();
    try (Engine engine = Engine.open(config)) {
      GenerationHandle handle = engine.submit(request.build());
      if (json) {
        out.println(Json.text(toJson(Futures.join(handle.completion()))));
      } else {
        for (TokenDelta delta : handle.deltas()) {
          out.print(delta.text());
          out.flush();
        }
        out.println();
        Completion completion = Futures.join(handle.completion());
        spec.commandLine().getErr().println(summary(completion));
        spec.commandLine().getErr().flush();
      }
      out.flush();
    }
    return 0;
  }

  private static String summary(Completion completion) {
    int generated = completion.usage().generatedTokens();
    Timings timings = completion.timings();
    double decodeSeconds = seconds(timings.decode());
    String speed =
        generated > 1 && decodeSeconds > 0
            ? String.format(", %.1f tokens/s", (generated - 1) / decodeSeconds)
            : "";
    return String.format(
        "[%d prompt tokens, %d generated%s; first token after %.3f s, all after %.3f s; %s]",
        completion.usage().promptTokens(),
        generated,
        speed,
        seconds(timings.timeToFirstToken()),
        seconds(timings.endToEnd()),
        completion.finishReason().label());
  }

  private static ObjectNode toJson(Completion completion) {
    ObjectNode body = Json.object();
    ArrayNode promptIds = body.putArray("prompt_ids");
    completion.promptTokenIds().forEach(promptIds::add);
    ArrayNode outputIds = body.putArray("output_ids");
    completion.tokenIds().forEach(outputIds::add);
    body.put("text", completion.text());
    body.put("finish_reason", completion.finishReason().label());
    ArrayNode positions = body.putArray("logprobs");
    for (PositionLogprobs position : completion.logprobs()) {
      ArrayNode best = positions.addArray();
      for (TokenLogprob token : position.top()) {
        best.addObject().put("id", token.tokenId()).put("logprob", token.logprob());
      }
    }
    Timings timings = completion.timings();
    body.putObject("timings")
        .put("queue_seconds", seconds(timings.queue()))
        .put("prefill_seconds", seconds(timings.prefill()))
        .put("decode_seconds", seconds(timings.decode()))
        .put("time_to_first_token_seconds", seconds(timings.timeToFirstToken()))
        .put("end_to_end_seconds", seconds(timings.endToEnd()));
    return body;
  }

  private static double seconds(Duration duration) {
    return duration.toNanos() / 1e9;
  }
}
