package dev.tacho.engine;

import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.format.GgufTensor;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KernelSelection;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.ffm.SystemPages;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvLayout;
import dev.tacho.engine.kv.KvMemory;
import dev.tacho.engine.model.LlamaRunner;
import dev.tacho.engine.model.ModelConfig;
import dev.tacho.engine.model.RepackCache;
import dev.tacho.engine.model.RunnerLimits;
import dev.tacho.engine.model.Weights;
import dev.tacho.engine.parallel.CpuBudget;
import dev.tacho.engine.parallel.WorkerTeam;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * From a configuration to what an engine runs on: reads the file, chooses kernels, divides the memory, takes it. If any
 * of it fails, everything taken before is given back.
 */
final class ModelLoader {
  private static final Logger LOG = LoggerFactory.getLogger(ModelLoader.class);
  private static final String TEAM_NAME = "tacho";

  private ModelLoader() {}

  /** What can compute on this machine, best first. */
  static List<KernelStatus> kernels() {
    List<KernelStatus> found = new ArrayList<>();
    for (KernelSelection.Candidate candidate : KernelSelection.survey()) {
      found.add(new KernelStatus(candidate.id(), candidate.ready(), candidate.detail()));
    }
    return found;
  }

  /** See {@link Engine#open(EngineConfig)}. */
  static LoadedModel load(EngineConfig config) {
    try (GgufFile file = GgufFile.open(config.model())) {
      ModelConfig model = ModelConfig.of(file);
      int maxModelLen = checkedMaxModelLen(config, model.contextLength());
      try (TokenizerLoad tokenizer = new TokenizerLoad(file)) {
        return load(config, file, model, maxModelLen, tokenizer);
      }
    }
  }

  private static LoadedModel load(
      EngineConfig config, GgufFile file, ModelConfig model, int maxModelLen, TokenizerLoad tokenizer) {
    try (CloseStack taken = new CloseStack()) {
      KernelSelection selection = KernelSelection.select(kernelsWord(config));
      List<CpuShare> shares = CpuShare.divide(config.dataParallelSize(), config.threads(), CpuBudget.read());
      shares.forEach(taken::push);
      int threads = shares.getFirst().threads();
      DType cacheType = cacheType(config);
      KvLayout layout = new KvLayout(model.layers(), model.kvHeads(), model.headDim(), cacheType);
      RunnerLimits limits = 
          new RunnerLimits(
              config.maxNumBatchedTokens(), config.maxNumSeqs(), maxModelLen, config.numSpeculativeTokens());
      MemoryPlan plan =
          MemoryPlan.of(
              config,
              maxModelLen,
              layout,
              Weights.requiredBytes(file, model, selection.kernels()),
              LlamaRunner.scratchBytes(model, limits, selection.kernels(), threads),
              MemoryPlan.machineBytes());
      EngineInfo info =
          new EngineInfo(
              config.servedModelName(),
              model.architecture(),
              parameters(file),
              weightType(file),
              model.vocabSize(),
              maxModelLen,
              selection.kernels().description(),
              passedOver(selection),
              threads,
              plan.kvBlocks(),
              cacheName(cacheType),
              new MemorySize(plan.weightBytes()),
              new MemorySize(plan.kvBytes()),
              new MemorySize(plan.workspaceBytes()));
      LOG.info("{}: {}", info.modelName(), plan.inWords());
      LoadedModel loaded =
          take(config, file, model, tokenizer, selection.kernels(), layout, limits, plan, info, shares);
      taken.release();
      log(config, info);
      return loaded;
    }
  }

  private static LoadedModel take(
      EngineConfig config,
      GgufFile file,
      ModelConfig model,
      TokenizerLoad tokenizer,
      Kernels kernels,
      KvLayout layout,
      RunnerLimits limits,
      MemoryPlan plan,
      EngineInfo info,
      List<CpuShare> shares) {
    try (CloseStack taken = new CloseStack()) {
      List<WorkerTeam> teams = new ArrayList<>();
      for (int rank = 0; rank < shares.size(); rank++) {
        String name = shares.size() == 1 ? TEAM_NAME : TEAM_NAME + "-" + rank;
        CpuShare share = shares.get(rank);
        teams.add(taken.push(new WorkerTeam(name, share.threads(), share.budget())));
      }
      Weights weights =
          taken.push(weights(config, file, model, kernels, teams.getFirst()));
      List<KvMemory> caches = new ArrayList<>();
      List<LlamaRunner> runners = new ArrayList<>();
      for (WorkerTeam team : teams) {
        KvMemory cache = taken.push(new KvMemory(layout, plan.kvBlocks(), kernels));
        caches.add(cache);
        runners.add(taken.push(new LlamaRunner(weights, cache, limits, team)));
      }
      // It may still be on its way while weights that are mapped are there at once.
      TokenizerCodec codec = taken.push(new TokenizerCodec(tokenizer.take(), model.vocabSize()));
      List<EngineParts> engines = new ArrayList<>();
      for (int rank = 0; rank < shares.size(); rank++) {
        KvMemory cache = caches.get(rank);
        engines.add(
            new EngineParts(
                info,
                codec,
                runners.get(rank),
                config.schedulerConfig(info.maxModelLen()),
                new KvBlockPool(plan.kvBlocks(), config.blockSize(), config.enablePrefixCaching()),
                weights.shape(layout.dtype()),
                model.slidingWindow(),
                () -> cache.discard(SystemPages::discard),
                List.of(cache, taken.push(weights.retain()), shares.get(rank))));
      }
      taken.release();
      return new LoadedModel(
          codec,
          new LoadedWeights(config.model(), weights),
          engines,
          plan.leaves(KernelPeakBench.BUFFER_BYTES, MemoryPlan.machineBytes())
              ? new KernelPeakBench(kernels, DType.valueOf(info.weightType()), info.threads())
              : null);
    } catch (OutOfMemoryError | IllegalStateException e) {
      ConfigurationException failure =
          new ConfigurationException(
              EngineOption.KV_CACHE_MEMORY.optionName(),
              plan.inWords() + "; not all of it was to be had: " + e.getMessage());
      failure.initCause(e);
      throw failure;
    }
  }

  private static Weights weights(
      EngineConfig config, GgufFile file, ModelConfig model, Kernels kernels, WorkerTeam team) {
    Weights.Progress progress = new LoadingProgress(System::nanoTime, LOG::info, SystemPages::release);
    return config
        .repackCache()
        .map(directory -> new RepackCache(directory, LOG::info))
        .map(cache -> Weights.load(file, model, kernels, team, progress, cache))
        .orElseGet(() -> Weights.load(file, model, kernels, team, progress));
  }

  /** The option; where it leaves the choice open, the system property. */
  private static String kernelsWord(EngineConfig config) {
    return config.kernels().equals(KernelSelection.AUTO) ? KernelSelection.configured() : config.kernels();
  }

  private static int checkedMaxModelLen(EngineConfig config, int contextLength) {
    int maxModelLen = config.maxModelLen().orElse(contextLength);
    if (maxModelLen > contextLength) {
      throw new ConfigurationException(
          EngineOption.MAX_MODEL_LEN.optionName(),
          maxModelLen + " tokens are more than the " + contextLength + " that the model was made for");
    }
    if (config.longPrefillTokenThreshold() > maxModelLen) {
      throw new ConfigurationException(
          EngineOption.LONG_PREFILL_TOKEN_THRESHOLD.optionName(),
          config.longPrefillTokenThreshold() + " is more than max-model-len, " + maxModelLen);
    }
    if (!config.enableChunkedPrefill() && config.maxNumBatchedTokens() < maxModelLen) {
      throw new ConfigurationException(
          EngineOption.MAX_NUM_BATCHED_TOKENS.optionName(),
          config.maxNumBatchedTokens()
              + " is less than max-model-len, "
              + maxModelLen
              + ", so that a long prompt would never run without enable-chunked-prefill");
    }
    return maxModelLen;
  }

  private static DType cacheType(EngineConfig config) {
    return switch (config.kvCacheDtype()) {
      case "float16" -> DType.F16;
      case "bfloat16" -> DType.BF16;
      case "q8_0" -> DType.Q8_0;
      default -> DType.F32;
    };
  }

  private static String cacheName(DType dtype) {
    return switch (dtype) {
      case F16 -> "float16";
      case BF16 -> "bfloat16";
      case Q8_0 -> "q8_0";
      default -> "float32";
    };
  }

  private static long parameters(GgufFile file) {
    long sum = 0;
    for (GgufTensor tensor : file.tensors()) {
      sum = Math.addExact(sum, tensor.elements());
    }
    return sum;
  }

  private static String weightType(GgufFile file) {
    Map<String, Long> bytes = new TreeMap<>();
    for (GgufTensor tensor : file.tensors()) {
      bytes.merge(tensor.typeName(), tensor.bytes(), Long::sum);
    }
    return Collections.max(bytes.entrySet(), Map.Entry.comparingByValue()).getKey();
  }

  private static List<String> passedOver(KernelSelection selection) {
    List<String> reasons = new ArrayList<>();
    for (KernelSelection.Candidate candidate : selection.candidates()) {
      if (!candidate.ready()) {
        reasons.add(candidate.id() + ": " + candidate.detail());
      }
    }
    return reasons;
  }

  private static void log(EngineConfig config, EngineInfo info) {
    LOG.info(
        "{}: {} from {}, {} parameters, kernels {} on {} threads, context {} tokens,"
            + " weights {}, KV cache {} ({} blocks, {}), workspace {}",
        info.modelName(),
        info.architecture(),
        config.model(),
        info.parameters(),
        info.kernels(),
        info.threads(),
        info.maxModelLen(),
        info.weights().human(),
        info.kvCache().human(),
        info.numKvBlocks(),
        info.kvCacheDtype(),
        info.workspace().human());
  }
}
