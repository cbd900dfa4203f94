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
import org.jspecify.annotations.Nullable;

/**
 * A model without a model: each sampled token comes from a script. A hook runs in the middle of each step, on the
 * engine thread, and may wait, throw or call the engine.
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

  private final Script script;
  private final StepHandle handle = ScriptedStep.handle();
  private final StepResult result = new StepResult();
  private final AtomicInteger steps = new AtomicInteger();
  private volatile StepHook hook = step -> {};
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

  /** Steps launched. */
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
    result.reset();
    for (int i = 0; i < plan.numSequences(); i++) {
      result.nextSequence();
      if (plan.samples(i)) {
        int id = script.next(plan.sequence(i));
        result.addToken(id, logprobs(plan.sequence(i), id));
      }
    }
    return handle;
  }

  private static @Nullable TokenLogprobs logprobs(Sequence sequence, int id) {
    int asked = sequence.sampler().params().logprobs();
    return asked < 0 ? null : new TokenLogprobs(-0.5f, 1, new int[] {id}, new float[] {-0.5f});
  }

  @Override
  public StepResult await(StepHandle step) {
    try {
      hook.run(steps.incrementAndGet());
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
    return result;
  }

  @Override
  public OperationCounters counters(Operation operation) {
    return new OperationCounters(0, 0, 0, 0);
  }

  @Override
  public void close() {
    closed = true;
  }
}
