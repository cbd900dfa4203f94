package dev.tacho.engine;

import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvLayout;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** Opens engines over a {@link ScriptedRunner} and a {@link ByteCodec}. */
final class ScriptedEngine {
  private final ScriptedRunner runner;
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

  private ScriptedEngine(ScriptedRunner runner) {
    this.runner = runner;
  }

  static ScriptedEngine over(ScriptedRunner runner) {
    return new ScriptedEngine(runner);
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

  /** The block pool of the engine opened last. */
  KvBlockPool pool() {
    return Objects.requireNonNull(pool);
  }

  Engine open() {
    EngineConfig config =
        more.apply(
                EngineConfig.builder()
                    .model(Path.of("scripted.gguf"))
                    .maxModelLen(maxModelLen)
                    .maxNumSeqs(maxNumSeqs)
                    .maxNumBatchedTokens(maxNumBatchedTokens))
            .build();
    int blocks = numBlocks > 0 ? numBlocks : 1 + maxNumSeqs * KvLayout.blocksForTokens(maxModelLen);
    MemorySize none = new MemorySize(0);
    EngineInfo info =
        new EngineInfo(
            name, "scripted", 0, ByteCodec.VOCAB_SIZE, maxModelLen, "none", List.of(), 1, blocks, "float32", none,
            none, none);
    SchedulerConfig scheduler = ModelLoader.schedulerConfig(config, maxModelLen);
    KvBlockPool blockPool = new KvBlockPool(blocks, config.blockSize(), config.enablePrefixCaching());
    pool = blockPool;
    EngineParts parts = new EngineParts(info, codec, runner, scheduler, blockPool, null, 0, memory);
    return new Engine(new EngineRuntime(config, parts, registry, limits));
  }
}
