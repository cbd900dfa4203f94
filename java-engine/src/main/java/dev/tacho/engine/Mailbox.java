package dev.tacho.engine;

import dev.tacho.engine.sampling.TokenLogprobs;
import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.metrics.event.FinishReason;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Where the output of one request is gathered: the output thread puts in, one reader takes out. Everything is kept for
 * the completion; a delta is what lies between the reader's place and the end, so deltas merge by themselves when the
 * reader is slow, and the mailbox is bounded by the request's own token limit. The lock is held for a few copies only.
 */
final class Mailbox {
  private static final int CHAR_BYTES = 2;
  private static final int TOKEN_BYTES = 4;

  /**
   * When a reader counts as slow.
   *
   * @param bytes unread bytes at most
   * @param nanos age of the oldest unread delta at most
   */
  record Limits(long bytes, long nanos) {
    /** 1 MiB, 30 seconds. */
    static final Limits DEFAULT = new Limits(1L << 20, 30_000_000_000L);
  }

  /** One completion: what has come and how far it was read. */
  private static final class Output {
    final StringBuilder text = new StringBuilder();
    final List<Integer> tokenIds = new ArrayList<>();
    final List<PositionLogprobs> logprobs = new ArrayList<>();
    @Nullable FinishReason finishReason;
    @Nullable StopReason stopReason;
    int readChars;
    int readTokens;
    boolean finishRead;
    long unreadSinceNanos;

    boolean hasUnread() {
      return readChars < text.length() || readTokens < tokenIds.size() || (finishReason != null && !finishRead);
    }
  }

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Limits limits;
  private final Output[] outputs;
  private boolean attached;
  private boolean closed;
  private @Nullable EngineException failure;
  private int nextToRead;
  private long unreadBytes;
  /** What lay there when the reader came is not held against it. */
  private long allowedBytes;

  /**
   * @param choices completions of the request
   * @param limits when the reader counts as slow
   */
  Mailbox(int choices, Limits limits) {
    this.limits = limits;
    outputs = new Output[choices];
    for (int i = 0; i < choices; i++) {
      outputs[i] = new Output();
    }
  }

  /** Takes the reader's place; its time begins now. */
  void attach(long nowNanos) {
    lock.lock();
    try {
      if (attached) {
        throw new IllegalStateException("the deltas of this request have a reader already");
      }
      attached = true;
      allowedBytes = limits.bytes() + unreadBytes;
      for (Output output : outputs) {
        output.unreadSinceNanos = nowNanos;
      }
    } finally {
      lock.unlock();
    }
  }

  /** Makes log-probabilities for the caller. */
  interface LogprobsView {
    /** Those of a token at its position. */
    PositionLogprobs of(int tokenId, TokenLogprobs logprobs);
  }

  /**
   * Adds what a step brought for one completion.
   *
   * @param index which one
   * @param output its text, and how many of its tokens count
   * @param outputs the step's
   * @param entry place of the sequence in them
   * @param view shows log-probabilities
   * @param nowNanos now
   * @return true if the reader has left too much, or anything too long
   */
  boolean put(
      int index, SequenceOutput output, StepOutputs outputs, int entry, LogprobsView view, long nowNanos) {
    String text = output.takeText();
    int count = output.newTokens();
    lock.lock();
    try {
      Output to = this.outputs[index];
      if (!to.hasUnread()) {
        to.unreadSinceNanos = nowNanos;
      }
      to.text.append(text);
      for (int j = 0; j < count; j++) {
        int id = outputs.token(entry, j);
        to.tokenIds.add(id);
        TokenLogprobs logprobs = outputs.logprobs(entry, j);
        if (logprobs != null) {
          to.logprobs.add(view.of(id, logprobs));
        }
      }
      unreadBytes += (long) text.length() * CHAR_BYTES + (long) count * TOKEN_BYTES;
      changed.signal();
      return attached && (unreadBytes > allowedBytes || nowNanos - to.unreadSinceNanos > limits.nanos());
    } finally {
      lock.unlock();
    }
  }

  /** Ends one completion with the last of its text. */
  void finish(int index, String text, FinishReason reason, @Nullable StopReason stopReason) {
    lock.lock();
    try {
      Output output = outputs[index];
      output.text.append(text);
      unreadBytes += (long) text.length() * CHAR_BYTES;
      output.finishReason = reason;
      output.stopReason = stopReason;
      changed.signal();
    } finally {
      lock.unlock();
    }
  }

  /** Nothing more comes; a failure is thrown to the reader behind the last delta. */
  void close(@Nullable EngineException requestFailure) {
    lock.lock();
    try {
      if (!closed) {
        closed = true;
        failure = requestFailure;
        changed.signal();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Tokens of all completions. */
  int generatedTokens() {
    lock.lock();
    try {
      int sum = 0;
      for (Output output : outputs) {
        sum += output.tokenIds.size();
      }
      return sum;
    } finally {
      lock.unlock();
    }
  }

  /** The completions; those that have not ended count as aborted. */
  List<Completion.Choice> choices() {
    lock.lock();
    try {
      List<Completion.Choice> choices = new ArrayList<>(outputs.length);
      for (int i = 0; i < outputs.length; i++) {
        Output output = outputs[i];
        FinishReason reason = output.finishReason == null ? FinishReason.ABORT : output.finishReason;
        choices.add(
            new Completion.Choice(
                i, output.text.toString(), output.tokenIds, reason, output.stopReason, output.logprobs));
      }
      return choices;
    } finally {
      lock.unlock();
    }
  }

  /** Waits for the next delta; null behind the last. */
  @Nullable TokenDelta take() throws InterruptedException {
    lock.lockInterruptibly();
    try {
      while (true) {
        for (int i = 0; i < outputs.length; i++) {
          int index = (nextToRead + i) % outputs.length;
          if (outputs[index].hasUnread()) {
            nextToRead = (index + 1) % outputs.length;
            return read(index);
          }
        }
        if (closed) {
          if (failure != null) {
            throw failure;
          }
          return null;
        }
        changed.await();
      }
    } finally {
      lock.unlock();
    }
  }

  private TokenDelta read(int index) {
    Output output = outputs[index];
    int chars = output.text.length();
    int tokens = output.tokenIds.size();
    List<PositionLogprobs> logprobs =
        output.logprobs.isEmpty() ? List.of() : output.logprobs.subList(output.readTokens, tokens);
    TokenDelta delta =
        new TokenDelta(
            index,
            output.text.substring(output.readChars, chars),
            output.tokenIds.subList(output.readTokens, tokens),
            logprobs,
            output.finishReason,
            output.stopReason);
    unreadBytes -= (long) (chars - output.readChars) * CHAR_BYTES + (long) (tokens - output.readTokens) * TOKEN_BYTES;
    output.readChars = chars;
    output.readTokens = tokens;
    output.finishRead = output.finishReason != null;
    allowedBytes = limits.bytes();
    return delta;
  }
}
