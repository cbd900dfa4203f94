package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import dev.tacho.engine.EngineInfo;
import dev.tacho.engine.EngineOption;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code tacho bench}: how fast this machine runs a model. */
@Command(
    name = "bench",
    description = {
      "Measures prefill, decode and batched decode of a model, in tokens a second:",
      "  prefill         a prompt of --prompt tokens, until its first token is there",
      "  decode          --decode tokens one after the other, behind a prompt of --depth tokens",
      "  batched_decode  the same for --batch sequences side by side, their tokens added up",
      "Each test is run for --warm seconds before it counts, so that the JIT compiler has done its work: also on what",
      "runs but once a step.",
      "A figure is the median of --repeat runs, its spread (largest - smallest) / median.",
      "Then, from one more run of each test, how the time divides among the operators, and how near each comes to its",
      "limit: the peak of matrix products in the model's type, or that of reading memory, measured right before.",
      "What an operator finds in a cache counts as read from memory, so that it may be above the limit.",
      "Prefix caching is off unless it is asked for; prompts are random token ids."
    },
    sortOptions = false)
final class BenchCommand implements Callable<Integer> {
  private static final long DEFAULT_BATCHED_TOKENS =
      Long.parseLong(EngineOption.MAX_NUM_BATCHED_TOKENS.defaultText());

  @Spec private CommandSpec spec;

  @Option(
      names = "--prompt",
      paramLabel = "N",
      description = "tokens of the prefill test; 0: without it (default ${DEFAULT-VALUE})")
  private int prompt = 512;

  @Option(
      names = "--decode",
      paramLabel = "N",
      description = "tokens to decode; 0: without these tests (default ${DEFAULT-VALUE})")
  private int decode = 64;

  @Option(
      names = "--depth",
      paramLabel = "N",
      description = "tokens in the cache before decoding (default ${DEFAULT-VALUE})")
  private int depth = 64;

  @Option(
      names = "--batch",
      paramLabel = "N",
      split = ",",
      description = "sequences side by side, one test each: 1,8 (default)")
  private List<Integer> batch = List.of(1, 8);

  @Option(names = "--repeat", paramLabel = "N", description = "runs of each test (default ${DEFAULT-VALUE})")
  private int repeat = 5;

  @Option(
      names = "--warm",
      paramLabel = "SECONDS",
      description = "for which a test is run before it counts, at least once (default ${DEFAULT-VALUE})")
  private int warm = 10;

  @Option(names = "--json", description = "print one JSON object a test and operator instead of the tables")
  private boolean json;

  @Option(
      names = "--plot",
      paramLabel = "FILE",
      description = "write a picture (SVG) of what each operator reached of its limit")
  private @Nullable Path plot;

  @Override
  public Integer call() {
    check("--prompt", prompt, 0, Integer.MAX_VALUE);
    check("--decode", decode, 0, Integer.MAX_VALUE);
    check("--depth", depth, 1, Integer.MAX_VALUE);
    check("--repeat", repeat, 1, 1_000);
    check("--warm", warm, 0, 3_600);
    batch.forEach(sequences -> check("--batch", sequences, 1, 128));
    if (prompt == 0 && decode == 0) {
      throw new ParameterException(spec.commandLine(), "--prompt and --decode are both 0: no test is left");
    }
    Path parent = plot == null ? null : plot.toAbsolutePath().getParent();
    if (parent != null && !Files.isDirectory(parent)) {
      throw new ParameterException(spec.commandLine(), "--plot: no such directory: " + parent);
    }
    List<Integer> sideBySide = decode == 0 ? List.of() : batch;
    long longest = Math.max((long) prompt, decode == 0 ? 0 : (long) depth + decode) + 1;
    if (longest > Integer.MAX_VALUE) {
      throw new ParameterException(spec.commandLine(), "--depth and --decode are too large together");
    }
    EngineConfig config = EngineOptions.config(spec.commandLine().getParseResult(), environment(longest));
    PrintWriter out = spec.commandLine().getOut();
    try (Engine engine = Engine.open(config)) {
      EngineBench bench = new EngineBench(engine, warm, repeat, this::progress);
      if (!json) {
        out.printf(
            Locale.ROOT,
            "%s, %s, %s, %d threads%n%-16s %6s %12s %8s%n",
            engine.modelName(),
            engine.info().weightType(),
            engine.info().kernels(),
            engine.info().threads(),
            "test",
            "batch",
            "tokens/s",
            "spread");
      }
      if (prompt > 0) {
        print(engine, bench.prefill(prompt));
      }
      for (int sequences : sideBySide) {
        print(engine, bench.decode(sequences, depth, decode));
      }
      List<Roofline> rooflines = new ArrayList<>();
      if (prompt > 0) {
        rooflines.add(bench.prefillRoofline(prompt));
      }
      for (int sequences : sideBySide) {
        rooflines.add(bench.decodeRoofline(sequences, depth, decode));
      }
      progress("");
      rooflines.forEach(this::print);
      plot(engine, rooflines);
    }
    return 0;
  }

  private void print(Roofline roofline) {
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      RooflineText.json(roofline).forEach(out::println);
    } else {
      out.println();
      out.print(RooflineText.table(roofline));
    }
    out.flush();
  }

  private void plot(Engine engine, List<Roofline> rooflines) {
    Path file = plot;
    if (file == null) {
      return;
    }
    EngineInfo info = engine.info();
    String title = info.modelName() + ", " + info.weightType() + ", " + info.kernels() + ", " + info.threads()
        + " threads: part of the limit that each operator reached";
    try {
      Files.writeString(file, RooflineText.svg(title, rooflines));
    } catch (IOException e) {
      throw new CommandFailedException("--plot: cannot write " + file + ": " + e);
    }
  }

  private void check(String option, int value, int least, int limit) {
    if (value < least || value > limit) {
      throw new ParameterException(
          spec.commandLine(), option + " must be from " + least + " to " + limit + ", is " + value);
    }
  }

  /** What a benchmark wants where neither the command line nor the environment says otherwise. */
  private Map<String, String> environment(long longest) {
    int sequences = Stream.concat(batch.stream(), Stream.of(1)).max(Integer::compare).orElseThrow();
    Map<String, String> environment = new HashMap<>(System.getenv());
    environment.putIfAbsent(EngineOption.ENABLE_PREFIX_CACHING.environmentName(), "false");
    environment.putIfAbsent(EngineOption.MAX_MODEL_LEN.environmentName(), Long.toString(longest));
    environment.putIfAbsent(EngineOption.MAX_NUM_SEQS.environmentName(), Integer.toString(sequences));
    // All sequences of a batch begin to decode in the same step.
    long prompts = Math.max(DEFAULT_BATCHED_TOKENS, (long) sequences * depth);
    environment.putIfAbsent(
        EngineOption.MAX_NUM_BATCHED_TOKENS.environmentName(),
        Long.toString(Math.min(prompts, Integer.MAX_VALUE)));
    return environment;
  }

  private void progress(String text) {
    PrintWriter err = spec.commandLine().getErr();
    err.print("\r\u001b[K" + text);
    err.flush();
  }

  private void print(Engine engine, BenchResult result) {
    progress("");
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      ObjectNode line =
          Json.object()
              .put("test", result.test())
              .put("model", engine.modelName())
              .put("type", engine.info().weightType())
              .put("threads", engine.info().threads())
              .put("batch", result.batch())
              .put("tokens_per_second", result.tokensPerSecond())
              .put("spread", result.spread());
      out.println(Json.text(line));
    } else {
      out.printf(
          Locale.ROOT,
          "%-16s %6d %12.2f %7.1f%%%n",
          result.test(),
          result.batch(),
          result.tokensPerSecond(),
          100 * result.spread());
    }
    out.flush();
  }
}
