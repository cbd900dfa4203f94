package dev.tacho.engine;

import dev.tacho.engine.kernel.ffm.NativeKernelProvider;
import dev.tacho.engine.token.Tokenizer;
import dev.tacho.metrics.perf.DevicePeaks;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * A model that answers prompts. Made by {@link #open}, which returns when it can serve. Any thread may call any method.
 * Inside there may be several engines, which share the weights and take requests in turn ({@link
 * EngineConfig#dataParallelSize()}).
 *
 * <p>The engine owns its memory (weights, KV cache, workspace) and threads until {@link #close()}, which may be called
 * at any time, with requests running, more than once: each request ends, then threads, then memory.
 */
public final class Engine implements AutoCloseable {
  private final EngineGroup group;

  Engine(EngineGroup group) {
    this.group = group;
  }

  /**
   * Begins to load, on threads of their own, what an engine needs whatever its model is: the native libraries that
   * compute and that encode text take some tenths of a second each. Worth its while if something else is to be done
   * before an engine is opened. Returns at once; a failure is left for {@code open} to report. Any thread.
   */
  public static void preload() {
    NativeKernelProvider.preload();
    Tokenizer.preload();
  }

  /** Opens a model file with the defaults. See {@link #open(EngineConfig)}. */
  public static Engine open(Path model) {
    return open(EngineConfig.builder().model(model).build());
  }

  /**
   * Loads a model and starts to serve it.
   *
   * @throws ModelFormatException if the file is not a valid model
   * @throws UnsupportedException if the model, or the kernels asked for, cannot be had here
   * @throws ConfigurationException if an option does not go with the model or the machine's memory
   */
  public static Engine open(EngineConfig config) {
    return open(config, null);
  }

  /**
   * Loads a model and publishes the engine's metrics in a registry that it shares with others. There, model name and
   * engine number must be unique.
   *
   * @throws IllegalArgumentException if they are not
   * @see #open(EngineConfig)
   */
  public static Engine open(EngineConfig config, @Nullable MetricsRegistry registry) {
    return open(config, registry, List.of());
  }

  /**
   * The same with further loggers of statistics. They get statistics also if the configuration disables the usual ones.
   *
   * @param plugIns each makes a logger for each engine
   */
  public static Engine open(
      EngineConfig config, @Nullable MetricsRegistry registry, List<StatLoggerFactory> plugIns) {
    return new Engine(
        new EngineGroup(config, ModelLoader.load(config), registry, plugIns, Mailbox.Limits.DEFAULT));
  }

  /** What can compute on this machine, in the order in which {@code --kernels auto} tries. */
  public static List<KernelStatus> kernels() {
    return ModelLoader.kernels();
  }

  /**
   * Answers a prompt; waits for the end. Interrupting the waiting thread cancels the request.
   *
   * @throws EngineException as {@link GenerationHandle#completion()}
   */
  public Completion complete(String prompt, SamplingParams sampling) {
    GenerationHandle handle = submit(GenerationRequest.of(prompt, sampling));
    try {
      return handle.completion().get();
    } catch (InterruptedException e) {
      handle.cancel();
      Thread.currentThread().interrupt();
      throw new CancellationException("interrupted while waiting for request " + handle.requestId());
    } catch (ExecutionException e) {
      if (e.getCause() instanceof EngineException known) {
        throw known;
      }
      throw new RequestFailedException(handle.requestId(), e.getCause() == null ? e : e.getCause());
    }
  }

  /**
   * Hands a request to the engine and returns at once.
   *
   * @throws EngineClosedException if the engine is closed or draining
   * @throws EngineDeadException if the engine is dead
   * @throws OverloadedException if too many requests, or tokens of prompts, are there already; the request leaves no
   *     trace but a count. A text that is tokenized while others come in may still be refused for its tokens: {@link
   *     GenerationHandle#completion()} fails then
   * @throws InvalidRequestException if the request id is in use
   */
  public GenerationHandle submit(GenerationRequest request) {
    return new GenerationHandle(group.submit(request));
  }

  /**
   * How things stand with a request and why; waits for the end of the step under way.
   *
   * @return empty if there is no unfinished request of this id
   * @throws EngineException if the engine is closed or dead
   */
  public Optional<RequestExplanation> explain(String requestId) {
    return group.explain(requestId);
  }

  /**
   * Forgets what the prefix cache holds; waits for the end of the step under way.
   *
   * @return false if a request uses KV blocks, as one that was cancelled does until the step in flight has ended; that
   *     engine, of several, forgets nothing then
   * @throws EngineException if the engine is closed or dead
   */
  public boolean resetPrefixCache() {
    return group.resetPrefixCache();
  }

  /** The same as {@link #sleep(int, SleepMode)} with {@link SleepMode#ABORT}. */
  public void sleep(int level) {
    sleep(level, SleepMode.ABORT);
  }

  /**
   * Stops computing and gives memory back to the system until {@link #wake()}; returns when that is done. All engines
   * sleep that were opened together. Requests that come meanwhile wait.
   *
   * @param level 0 gives nothing back; 1 gives the KV cache back and forgets its contents; 2 also the weights, which
   *     waking loads from the model file again
   * @param mode what becomes of the requests that are there
   * @throws InvalidRequestException if there is no such level
   * @throws UnsupportedException if this system cannot take memory back
   * @throws EngineException if the engine is closed
   */
  public void sleep(int level, SleepMode mode) {
    group.sleep().sleep(level, mode);
  }

  /** Takes back all that was given up, and goes on. Does nothing if the engine is awake. */
  public void wake() {
    wake(Set.of());
  }

  /**
   * Takes back some of what was given up. The engine goes on when it has all of it.
   *
   * @param tags what; empty for all
   * @throws ModelFormatException if the model file is gone, or holds another model now; the engine sleeps on
   */
  public void wake(Set<SleepTag> tags) {
    group.sleep().wake(tags);
  }

  /** True from the moment that {@link #sleep(int)} holds requests back until everything has been woken. */
  public boolean isSleeping() {
    return group.sleep().isSleeping();
  }

  /** What the engine has measured. */
  public EngineMetrics metrics() {
    return group.metrics();
  }

  /**
   * What the engine's workers have computed so far, by operator; of several engines together. Weights are packed before
   * that. A step under way may be there in part.
   */
  public List<OperatorWork> operatorWork() {
    return group.operatorWork();
  }

  /**
   * What the threads of one engine can do at their peak: as configured, or measured now, which takes the threads and
   * 256 MiB for half a second.
   *
   * @return empty if a request arrived meanwhile, or for kernels of which nobody knows how to measure that
   * @throws EngineException if the engine is closed or dead
   */
  public Optional<DevicePeaks> measurePeaks() {
    return group.measurePeaks();
  }

  /** The moving parts, for tests. */
  EngineGroup group() {
    return group;
  }

  /** What the engine is doing. */
  public EngineState state() {
    return group.state();
  }

  /** How the engine was set up. */
  public EngineConfig config() {
    return group.config();
  }

  /** What the engine found and set up when it was opened. */
  public EngineInfo info() {
    return group.info();
  }

  /** The model's name in requests and metrics. */
  public String modelName() {
    return group.info().modelName();
  }

  /** Tokens of prompt and output together at most. */
  public int maxModelLen() {
    return group.info().maxModelLen();
  }

  /** Token ids of a text as a prompt, with the special tokens that the model wants. */
  public List<Integer> encode(String text) {
    return group.encode(text);
  }

  /** The text of token ids, special tokens left out. */
  public String decode(List<Integer> tokenIds) {
    return group.decode(tokenIds);
  }

  /** Aborts what runs and gives everything back. Returns when it is done; harmless when it was done before. */
  @Override
  public void close() {
    close(Duration.ZERO);
  }

  /**
   * Accepts nothing new, lets the requests end for so long, aborts the rest and gives everything back. An engine that
   * is asleep ends what it holds at once; one that is being closed is neither put to sleep nor woken.
   *
   * @param drain how long requests may go on
   */
  public void close(Duration drain) {
    group.close(drain);
  }
}
