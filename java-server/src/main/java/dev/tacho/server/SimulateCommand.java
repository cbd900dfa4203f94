package dev.tacho.server;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.engine.ConfigurationException;
import dev.tacho.engine.EngineConfig;
import dev.tacho.engine.EngineOption;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.simulation.CostModel;
import dev.tacho.engine.simulation.RequestTrace;
import dev.tacho.engine.simulation.Simulation;
import dev.tacho.engine.simulation.SimulationReport;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code tacho simulate}: a trace of requests through the scheduler, without a model and without waiting. */
@Command(
    name = "simulate",
    description = {
      "Replays a trace of requests through the real scheduler on virtual time: how long requests would take, how full"
          + " the KV cache would be, how often sequences would be preempted.",
      "The trace is CSV with a line of names, or one JSON object a line: arrival (seconds), prompt_tokens,"
          + " output_tokens, and if wanted prefix_group (prompts of a group begin alike) and prefix_tokens (as far as"
          + " this; by default all of the prompt)."
    },
    sortOptions = false)
final class SimulateCommand implements Callable<Integer> {
  /** The engine's options that decide about a simulation. */
  static final EnumSet<EngineOption> ENGINE_OPTIONS =
      EnumSet.of(
          EngineOption.MAX_MODEL_LEN,
          EngineOption.MAX_NUM_SEQS,
          EngineOption.MAX_NUM_BATCHED_TOKENS,
          EngineOption.LONG_PREFILL_TOKEN_THRESHOLD,
          EngineOption.ENABLE_CHUNKED_PREFILL,
          EngineOption.NUM_GPU_BLOCKS_OVERRIDE,
          EngineOption.ENABLE_PREFIX_CACHING,
          EngineOption.PREFIX_CACHING_HASH_ALGO);

  private static final List<String> COSTS = List.of("step", "prefill_token", "decode_token", "context_token");
  private static final long PROGRESS_NANOS = 1_000_000_000L;

  @Spec private CommandSpec spec;

  /** One of the two. */
  static final class Cost {
    @Option(
        names = "--cost",
        paramLabel = "NAME=MICROSECONDS",
        split = ",",
        description =
            "what a step costs, e.g. step=2000,prefill_token=40,decode_token=150,context_token=0.02; what is left out"
                + " costs nothing")
    private @Nullable Map<String, Double> given;

    @Option(names = "--cost-file", paramLabel = "FILE", description = "the same as a JSON object")
    private @Nullable Path file;
  }

  @Parameters(paramLabel = "TRACE", description = "file of requests")
  private Path trace = Path.of("");

  @ArgGroup(multiplicity = "1")
  private Cost cost = new Cost();

  @Option(names = "--json", description = "print one JSON object instead of a table")
  private boolean json;

  @Override
  public Integer call() {
    CostModel model = costModel();
    EngineConfig config =
        EngineOptions.given(
                spec.commandLine().getParseResult(), EngineConfig.builder().model(Path.of("simulated")))
            .build();
    OptionalInt blocks = config.numGpuBlocksOverride();
    if (blocks.isEmpty()) {
      throw new ConfigurationException(
          EngineOption.NUM_GPU_BLOCKS_OVERRIDE.optionName(), "is needed: there is no model to tell a KV cache's size");
    }
    RequestTrace requests = TraceReader.read(trace);
    int maxModelLen = config.maxModelLen().orElse(requests.longest() + 1);
    long begin = System.nanoTime();
    SimulationReport report;
    try {
      KvBlockPool pool = new KvBlockPool(blocks.getAsInt(), config.blockSize(), config.enablePrefixCaching());
      Simulation simulation = new Simulation(requests, config.schedulerConfig(maxModelLen), pool, model);
      report = simulation.run(new Progress(requests.size()));
    } catch (IllegalArgumentException e) {
      throw new CommandFailedException(String.valueOf(e.getMessage()));
    } catch (OutOfMemoryError e) {
      throw new CommandFailedException(
          blocks.getAsInt() + " blocks and " + requests.size() + " requests do not fit into the heap (" + e.getMessage()
              + "); TACHO_JAVA_OPTS=-Xmx... makes it larger");
    }
    double wallSeconds = (System.nanoTime() - begin) / 1e9;
    PrintWriter out = spec.commandLine().getOut();
    out.println(json ? Json.pretty(SimulationText.json(report, wallSeconds)) : SimulationText.table(report));
    out.flush();
    PrintWriter err = spec.commandLine().getErr();
    err.printf(
        "[%d requests simulated in %.2f s, %.1f million tokens of decode a second]%n",
        report.requests(), wallSeconds, report.decodeTokens() / wallSeconds / 1e6);
    err.flush();
    return 0;
  }

  private CostModel costModel() {
    Map<String, Double> micros = new HashMap<>();
    if (cost.given != null) {
      micros.putAll(cost.given);
    } else if (cost.file != null) {
      micros.putAll(read(cost.file));
    }
    for (String name : micros.keySet()) {
      if (!COSTS.contains(name)) {
        throw new ConfigurationException("cost", "'" + name + "' is none of " + String.join(", ", COSTS));
      }
    }
    try {
      return new CostModel(
          micros.getOrDefault(COSTS.get(0), 0.0),
          micros.getOrDefault(COSTS.get(1), 0.0),
          micros.getOrDefault(COSTS.get(2), 0.0),
          micros.getOrDefault(COSTS.get(3), 0.0));
    } catch (IllegalArgumentException e) {
      throw new ConfigurationException("cost", String.valueOf(e.getMessage()));
    }
  }

  private static Map<String, Double> read(Path file) {
    Map<String, Double> micros = new HashMap<>();
    for (Map.Entry<String, JsonNode> entry : Json.readObject(file).properties()) {
      if (!entry.getValue().isNumber()) {
        throw new CommandFailedException(file + ": " + entry.getKey() + " is no number");
      }
      micros.put(entry.getKey(), entry.getValue().asDouble());
    }
    return micros;
  }

  /** A line a second on the standard error, if it takes that long. */
  private final class Progress implements IntConsumer {
    private final int total;
    private long last = System.nanoTime();

    Progress(int total) {
      this.total = total;
    }

    @Override
    public void accept(int finished) {
      long now = System.nanoTime();
      if (now - last >= PROGRESS_NANOS) {
        last = now;
        PrintWriter err = spec.commandLine().getErr();
        err.printf("%d of %d requests%n", finished, total);
        err.flush();
      }
    }
  }
}
