package dev.tacho.engine;

import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Refuses requests when there are too many: by sequences that have not ended, and by prompt tokens of sequences that
 * have not given a first output. A refusal is counted once a request and leaves no other trace. Any thread; no lock.
 */
final class AdmissionGate {
  private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

  private final long maxSequences;
  private final long maxPromptTokens;
  private final CounterPage counters;
  private final AtomicLong sequences = new AtomicLong();
  private final AtomicLong promptTokens = new AtomicLong();

  /**
   * @param config has the limits
   * @param counters where refusals are counted
   */
  AdmissionGate(EngineConfig config, CounterPage counters) {
    maxSequences = orNone(config.maxNumQueuedReqs());
    maxPromptTokens = orNone(config.maxNumQueuedTokens());
    this.counters = counters;
  }

  private static long orNone(OptionalInt limit) {
    return limit.isPresent() ? limit.getAsInt() : Long.MAX_VALUE;
  }

  /**
   * Lets the sequences of a request in. Each must {@link #leave}.
   *
   * @throws OverloadedException if there are too many already
   */
  void enter(int count) {
    long there;
    do {
      there = sequences.get();
      if (there + count > maxSequences) {
        counters.add(EngineCounter.REJECTED_REQUESTS, 1);
        throw refusal(EngineOption.MAX_NUM_QUEUED_REQS, maxSequences, there);
      }
    } while (!sequences.compareAndSet(there, there + count));
    if (promptTokens.get() >= maxPromptTokens) {
      leave(count);
      throw tokensRefused(promptTokens.get());
    }
  }

  /**
   * Counts the prompts of a request that is in; all of it must {@link #dequeue}.
   *
   * @throws OverloadedException if others came before while it was tokenized, and are too many now
   */
  void queue(long tokens) {
    long there;
    do {
      there = promptTokens.get();
      if (there >= maxPromptTokens) {
        throw tokensRefused(there);
      }
    } while (!promptTokens.compareAndSet(there, there + tokens));
  }

  private OverloadedException tokensRefused(long there) {
    counters.add(EngineCounter.REJECTED_TOKENS, 1);
    return refusal(EngineOption.MAX_NUM_QUEUED_TOKENS, maxPromptTokens, there);
  }

  private static OverloadedException refusal(EngineOption option, long limit, long there) {
    return new OverloadedException(option.key(), limit, there, RETRY_AFTER);
  }

  /** Prompts have given a first output, or will not. */
  void dequeue(long tokens) {
    promptTokens.addAndGet(-tokens);
  }

  /** Sequences have ended. */
  void leave(int count) {
    sequences.addAndGet(-count);
  }
}
