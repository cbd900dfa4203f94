package dev.tacho.engine;

import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Refuses requests when there are too many: by sequences that have not ended, and by prompt tokens of sequences that
 * have not given a first output. A refusal is counted once a request, if statistics are on, and leaves no other trace.
 * It says when to try again, as far as what has left of late tells. Any thread; no lock.
 */
final class AdmissionGate {
  private static final long MIN_RETRY_SECONDS = 1;
  private static final long MAX_RETRY_SECONDS = 60;

  private final long maxSequences;
  private final long maxPromptTokens;
  private final boolean counts;
  private final CounterPage counters;
  private final LongSupplier clock;
  private final AtomicLong sequences = new AtomicLong();
  private final AtomicLong promptTokens = new AtomicLong();
  private final RecentRate sequencesEnded;
  private final RecentRate tokensPrefilled;

  /**
   * @param config has the limits
   * @param counters where refusals are counted
   */
  AdmissionGate(EngineConfig config, CounterPage counters) {
    this(config, counters, System::nanoTime);
  }

  /**
   * @param config has the limits
   * @param counters where refusals are counted
   * @param clock nanoseconds
   */
  AdmissionGate(EngineConfig config, CounterPage counters, LongSupplier clock) {
    maxSequences = orNone(config.maxNumQueuedReqs());
    maxPromptTokens = orNone(config.maxNumQueuedTokens());
    counts = !config.disableLogStats();
    this.counters = counters;
    this.clock = clock;
    sequencesEnded = new RecentRate(clock.getAsLong());
    tokensPrefilled = new RecentRate(clock.getAsLong());
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
        count(EngineCounter.REJECTED_REQUESTS);
        throw new OverloadedException(
            EngineOption.MAX_NUM_QUEUED_REQS.key(),
            maxSequences,
            there,
            timeFor(there + count - maxSequences, sequencesEnded));
      }
    } while (!sequences.compareAndSet(there, there + count));
    if (promptTokens.get() >= maxPromptTokens) {
      sequences.addAndGet(-count);
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
    count(EngineCounter.REJECTED_TOKENS);
    return new OverloadedException(
        EngineOption.MAX_NUM_QUEUED_TOKENS.key(), maxPromptTokens, there, timeFor(there, tokensPrefilled));
  }

  private void count(EngineCounter reason) {
    if (counts) {
      counters.add(reason, 1);
    }
  }

  /** What {@code amount} takes at the rate of the last seconds, in whole seconds; the longest if nothing moved. */
  private Duration timeFor(long amount, RecentRate rate) {
    double perSecond = rate.perSecond(clock.getAsLong());
    double seconds = perSecond > 0 ? Math.ceil(amount / perSecond) : MAX_RETRY_SECONDS;
    return Duration.ofSeconds((long) Math.clamp(seconds, MIN_RETRY_SECONDS, MAX_RETRY_SECONDS));
  }

  /** Prompts have given a first output, or will not. */
  void dequeue(long tokens) {
    promptTokens.addAndGet(-tokens);
    tokensPrefilled.add(tokens, clock.getAsLong());
  }

  /** Sequences have ended. */
  void leave(int count) {
    sequences.addAndGet(-count);
    sequencesEnded.add(count, clock.getAsLong());
  }
}
