package dev.tacho.engine;

import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvLayout;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** Opens engines over a {@link ScriptedRunner} and a {@link ByteCodec}. */
final class ScriptedEngine {
  private final List<ScriptedRunner> runners;
  private final AtomicInteger cachesDiscarded = new AtomicInteger();
  private ScriptedWeights weights = new ScriptedWeights();
  private List<StatLoggerFactory> plugIns = List.of();
  private TextCodec codec = new ByteCodec();
  private int maxModelLen = 4096;
  private int maxNumSeqs = 64;
  private int maxNumBatchedTokens = 256;
  private int numBlocks;
  private UnaryOperator<EngineConfig.Builder> more = builder -> builder;
  private String name = "scripted";
  private @Nullable MetricsRegistry registry;
  private List<AutoCloseable> memory = List.of();
  private @Nullable KvBlockPool pool;
  private Mailbox.Limits limits = Mailbox.Limits.DEFAULT;

  private ScriptedEngine(List<ScriptedRunner> runners) {
    this.runners = runners;
  }

  /** An engine, or one for each runner. */
  static ScriptedEngine over(ScriptedRunner... runners) {
    return new ScriptedEngine(List.of(runners));
  }

  static Engine open(ScriptedRunner runner) {
    return over(runner).open();
  }

  ScriptedEngine maxModelLen(int tokens) {
    maxModelLen = tokens;
    return this;
  }

  ScriptedEngine maxNumSeqs(int sequences) {
    maxNumSeqs = sequences;
    return this;
  }

  ScriptedEngine maxNumBatchedTokens(int tokens) {
    maxNumBatchedTokens = tokens;
    return this;
  }

  ScriptedEngine numBlocks(int blocks) {
    numBlocks = blocks;
    return this;
  }

  /** Sets options that this class has no method for. */
  ScriptedEngine with(UnaryOperator<EngineConfig.Builder> options) {
    more = options;
    return this;
  }

  ScriptedEngine slowReaderAfter(long bytes, long nanos) {
    limits = new Mailbox.Limits(bytes, nanos);
    return this;
  }

  ScriptedEngine codec(TextCodec other) {
    codec = other;
    return this;
  }

  ScriptedEngine name(String modelName) {
    name = modelName;
    return this;
  }

  ScriptedEngine registry(MetricsRegistry shared) {
    registry = shared;
    return this;
  }

  ScriptedEngine memory(AutoCloseable... closedAfterTheRunner) {
    memory = List.of(closedAfterTheRunner);
    return this;
  }

  ScriptedEngine weights(ScriptedWeights scripted) {
    weights = scripted;
    return this;
  }

  ScriptedEngine plugIn(StatLoggerFactory factory) {
    plugIns = List.of(factory);
    return this;
  }

  /** Steps that all of its runners have run. */
  int steps() {
    return runners.stream().mapToInt(ScriptedRunner::steps).sum();
  }

  /** How often the memory of a KV cache was given up. */
  int cachesDiscarded() {
    return cachesDiscarded.get();
  }

  /** The block pool of the engine opened last; of the first, if there are several. */
  KvBlockPool pool() {
    return Objects.requireNonNull(pool);
  }

  Engine open() {
    EngineConfig config =
        more.apply(
                EngineConfig.builder()
                    .model(Path.of("scripted.gguf"))
                    .maxModelLen(maxModelLen)
                    .dataParallelSize(runners.size())
                    .maxNumSeqs(maxNumSeqs)
                    .maxNumBatchedTokens(maxNumBatchedTokens))
            .build();
    int blocks = numBlocks > 0 ? numBlocks : 1 + maxNumSeqs * KvLayout.blocksForTokens(maxModelLen);
    MemorySize none = new MemorySize(0);
    EngineInfo info =
        new EngineInfo(
            name, "scripted", 0, "none", ByteCodec.VOCAB_SIZE, maxModelLen, "none", List.of(), 1, blocks, "float32",
            none, none, none);
    SchedulerConfig scheduler = config.schedulerConfig(maxModelLen);
    KvBlockPool blockPool = new KvBlockPool(blocks, config.blockSize(), config.enablePrefixCaching());
    pool = blockPool;
    List<EngineParts> engines = new ArrayList<>();
    for (int rank = 0; rank < runners.size(); rank++) {
      KvBlockPool ofRank = rank == 0 ? blockPool : new KvBlockPool(blocks, config.blockSize(), true);
      engines.add(
          new EngineParts(
              info,
              codec,
              runners.get(rank),
              scheduler,
              ofRank,
              null,
              0,
              cachesDiscarded::incrementAndGet,
              rank == 0 ? memory : List.of()));
    }
    LoadedModel model = new LoadedModel(codec, weights, engines, null);
    return new Engine(new EngineGroup(config, model, registry, plugIns, limits));
  }
}
