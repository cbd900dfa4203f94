package dev.tacho.engine;

import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.model.ModelRunner;
import dev.tacho.engine.model.OperationCounters;
import dev.tacho.engine.model.ScriptedStep;
import dev.tacho.engine.model.StepHandle;
import dev.tacho.engine.sampling.TokenLogprobs;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A model without a model: each sampled token comes from a script. Two steps may be in flight. A hook runs when a step
 * is awaited, on the engine thread, and may wait, throw or call the engine; the tokens of the step before it are in
 * their sequences by then.
 */
final class ScriptedRunner implements ModelRunner {
  /** The token that follows what a sequence has. */
  interface Script {
    int next(Sequence sequence);
  }

  /** Runs while a step computes; gets the step's number, from 1. */
  interface StepHook {
    void run(int step) throws Exception;
  }

  /** A launched step. */
  private static final class Step {
    final StepHandle handle = ScriptedStep.handle();
    final StepResult result = new StepResult();
    @Nullable Sequence[] sequences = new @Nullable Sequence[64];
    boolean[] samples = new boolean[64];
    int size;
  }

  private final Script script;
  private final Step[] inFlight = {new Step(), new Step()};
  private final AtomicInteger launches = new AtomicInteger();
  private final AtomicInteger steps = new AtomicInteger();
  private volatile StepHook hook = step -> {};
  private volatile int nanStep;
  private volatile long gapNanos;
  private volatile IntConsumer launchHook = launch -> {};
  private volatile Consumer<StepPlan> planHook = plan -> {};
  private volatile boolean closed;

  ScriptedRunner(Script script) {
    this.script = script;
  }

  /** Continues every prompt with the bytes of a text, then with end-of-text. */
  static ScriptedRunner saying(String text) {
    int[] ids = new ByteCodec().encode(text);
    return new ScriptedRunner(s -> s.outputLength() < ids.length ? ids[s.outputLength()] : ByteCodec.EOS);
  }

  /** Continues every prompt with the letter x, for ever. */
  static ScriptedRunner endless() {
    return new ScriptedRunner(s -> 'x');
  }

  /** The same at the pace of a real model: 4000 tokens take a good while. */
  static ScriptedRunner unhurried() {
    return endless().during(step -> LockSupport.parkNanos(200_000));
  }

  ScriptedRunner during(StepHook newHook) {
    hook = newHook;
    return this;
  }

  /** Runs before each launch; gets its number, from 1. What it throws refuses the launch. */
  ScriptedRunner atLaunch(IntConsumer newHook) {
    launchHook = newHook;
    return this;
  }

  /** Sees each plan that is launched; it is the scheduler's and changes afterwards. */
  ScriptedRunner seeing(Consumer<StepPlan> newHook) {
    planHook = newHook;
    return this;
  }

  /** All tokens of a step come from logits with a NaN among them. */
  ScriptedRunner nanIn(int step) {
    nanStep = step;
    return this;
  }

  /** Says that the workers had no step for so long before each. */
  ScriptedRunner withGaps(long nanos) {
    gapNanos = nanos;
    return this;
  }

  /** Launches, refused ones included. */
  int launches() {
    return launches.get();
  }

  /** Steps awaited. */
  int steps() {
    return steps.get();
  }

  boolean closed() {
    return closed;
  }

  @Override
  public StepHandle launch(StepPlan plan) {
    if (closed) {
      throw new IllegalStateException("the runner is closed");
    }
    int launch = launches.incrementAndGet();
    launchHook.accept(launch);
    planHook.accept(plan);
    Step step = inFlight[launch % 2];
    step.size = plan.numSequences();
    if (step.size > step.samples.length) {
      step.sequences = new @Nullable Sequence[2 * step.size];
      step.samples = new boolean[2 * step.size];
    }
    for (int i = 0; i < step.size; i++) {
      step.sequences[i] = plan.sequence(i);
      step.samples[i] = plan.samples(i);
    }
    return step.handle;
  }

  private static @Nullable TokenLogprobs logprobs(Sequence sequence, int id) {
    int asked = sequence.sampler().params().logprobs();
    return asked < 0 ? null : new TokenLogprobs(-0.5f, 1, new int[] {id}, new float[] {-0.5f});
  }

  @Override
  public StepResult await(StepHandle handle) {
    Step step = inFlight[0].handle == handle ? inFlight[0] : inFlight[1];
    int number = steps.incrementAndGet();
    try {
      hook.run(number);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
    step.result.reset();
    step.result.setGapNanos(gapNanos);
    for (int i = 0; i < step.size; i++) {
      step.result.nextSequence();
      Sequence sequence = step.sequences[i];
      if (step.samples[i] && sequence != null) {
        // What has ended meanwhile gets a token that goes nowhere.
        int id = sequence.isLive() ? script.next(sequence) : 0;
        step.result.addToken(id, logprobs(sequence, id));
        if (number == nanStep) {
          step.result.markNan();
        }
      }
    }
    return step.result;
  }

  @Override
  public OperationCounters counters(Operation operation) {
    return new OperationCounters(0, 0, 0, 0, 0);
  }

  @Override
  public long ffiCalls() {
    return 0;
  }

  @Override
  public int workers() {
    return 1;
  }

  @Override
  public long waitNanos(int worker) {
    return 0;
  }

  @Override
  public long busyNanos() {
    return 0;
  }

  @Override
  public void close() {
    closed = true;
  }
}
