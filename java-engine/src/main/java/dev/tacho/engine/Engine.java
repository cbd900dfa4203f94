package dev.tacho.engine;

import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A model that answers prompts. Made by {@link #open}, which returns when it can serve. Any thread may call any method.
 *
 * <p>The engine owns its memory (weights, KV cache, workspace) and threads until {@link #close()}, which may be called
 * at any time, with requests running, more than once: each request ends, then threads, then memory.
 */
public final class Engine implements AutoCloseable {
  private final EngineRuntime runtime;

  Engine(EngineRuntime runtime) {
    this.runtime = runtime;
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
    return new Engine(new EngineRuntime(config, ModelLoader.load(config), registry, Mailbox.Limits.DEFAULT));
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
    return runtime.await(submit(GenerationRequest.of(prompt, sampling)));
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
    return new GenerationHandle(runtime.submit(request));
  }

  /**
   * How things stand with a request and why; waits for the end of the step under way.
   *
   * @return empty if there is no unfinished request of this id
   * @throws EngineException if the engine is closed or dead
   */
  public Optional<RequestExplanation> explain(String requestId) {
    return runtime.explain(requestId);
  }

  /**
   * Forgets what the prefix cache holds; waits for the end of the step under way.
   *
   * @return false if a request uses KV blocks; nothing is forgotten then
   * @throws EngineException if the engine is closed or dead
   */
  public boolean resetPrefixCache() {
    return runtime.resetPrefixCache();
  }

  /** What the engine has measured. */
  public EngineMetrics metrics() {
    return runtime.metrics();
  }

  /** The moving parts, for tests. */
  EngineRuntime runtime() {
    return runtime;
  }

  /** What the engine is doing. */
  public EngineState state() {
    return runtime.state();
  }

  /** How the engine was set up. */
  public EngineConfig config() {
    return runtime.config();
  }

  /** What the engine found and set up when it was opened. */
  public EngineInfo info() {
    return runtime.info();
  }

  /** The model's name in requests and metrics. */
  public String modelName() {
    return runtime.info().modelName();
  }

  /** Tokens of prompt and output together at most. */
  public int maxModelLen() {
    return runtime.info().maxModelLen();
  }

  /** Token ids of a text as a prompt, with the special tokens that the model wants. */
  public List<Integer> encode(String text) {
    return runtime.encode(text);
  }

  /** The text of token ids, special tokens left out. */
  public String decode(List<Integer> tokenIds) {
    return runtime.decode(tokenIds);
  }

  /** Aborts what runs and gives everything back. Returns when it is done; harmless when it was done before. */
  @Override
  public void close() {
    close(Duration.ZERO);
  }

  /**
   * Accepts nothing new, lets the requests end for so long, aborts the rest and gives everything back.
   *
   * @param drain how long requests may go on
   */
  public void close(Duration drain) {
    runtime.close(drain);
  }
}
