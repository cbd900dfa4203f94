package dev.tacho.engine;

import dev.tacho.metrics.event.RequestId;
import dev.tacho.metrics.stats.RequestSpeculation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One request of a user from submit to end: what the handle, the tokenizing pool, the engine thread and the output
 * thread share. Its futures complete on a virtual thread, since actions that depend on them are foreign code.
 */
final class Generation {
  /** Stop reason of a request that its owner cancelled. */
  static final String CANCELLED = "cancelled";

  /** Stop reason of a request whose deltas were not read. */
  static final String SLOW_READER = "slow_reader";

  /** Stop reason of a request that has waited as long as it may. */
  static final String QUEUE_TIMEOUT = "queue_timeout";

  private static final String FAILED = "failed";
  private static final AtomicInteger PARENT_NUMBERS = new AtomicInteger();
  private static final Executor FOREIGN_CODE = Thread::startVirtualThread;

  private final String requestId;
  private final RequestId eventId;
  private final GenerationRequest request;
  private final long arrivalNanos;
  private final long queueDeadlineNanos;
  private final Mailbox mailbox;
  private final int parentNumber;
  private final Consumer<Generation> aborter;
  private final CompletableFuture<List<Integer>> accepted = new CompletableFuture<>();
  private final CompletableFuture<Completion> completion = new CompletableFuture<>();
  private final AtomicReference<@Nullable String> abortCause = new AtomicReference<>();
  private final AtomicReference<@Nullable EngineException> failure = new AtomicReference<>();
  private volatile boolean admitted;

  // Written before the request enters the inbox.
  private int[] promptIds = {};
  private RequestRecord[] records = {};
  private @Nullable RequestSpeculation speculation;

  // Output thread; times are 0 until they happen.
  private int endedSequences;
  private long queuedNanos;
  private long scheduledNanos;
  private long firstTokenNanos;
  private long lastTokenNanos;
  private long firstPickUpNanos;

  /**
   * @param requestId unique among the live ones
   * @param request what is asked
   * @param arrivalNanos when it was submitted
   * @param limits when its reader counts as slow
   * @param aborter tells the engine to end it; called once at most
   */
  Generation(
      String requestId,
      GenerationRequest request,
      long arrivalNanos,
      Mailbox.Limits limits,
      Consumer<Generation> aborter) {
    this.requestId = requestId;
    eventId = RequestId.of(requestId);
    this.request = request;
    this.arrivalNanos = arrivalNanos;
    this.aborter = aborter;
    Duration timeout = request.queueTimeout();
    queueDeadlineNanos = timeout == null ? 0 : arrivalNanos + longestWait(timeout).toNanos();
    int n = request.sampling().n();
    mailbox = new Mailbox(n, limits);
    parentNumber = n == 1 ? 0 : PARENT_NUMBERS.updateAndGet(last -> last == Integer.MAX_VALUE ? 1 : last + 1);
  }

  /** Nanoseconds are compared by their difference, so a deadline must not be too far away. */
  private static Duration longestWait(Duration timeout) {
    Duration longest = Duration.ofNanos(Long.MAX_VALUE / 4);
    return timeout.compareTo(longest) > 0 ? longest : timeout;
  }

  String requestId() {
    return requestId;
  }

  /** The id as events carry it. */
  RequestId eventId() {
    return eventId;
  }

  GenerationRequest request() {
    return request;
  }

  SamplingParams sampling() {
    return request.sampling();
  }

  long arrivalNanos() {
    return arrivalNanos;
  }

  /** True if it may not wait for ever. */
  boolean hasQueueDeadline() {
    return request.queueTimeout() != null;
  }

  /** Until when it may wait; meaningless if it has no such deadline. */
  long queueDeadlineNanos() {
    return queueDeadlineNanos;
  }

  /** A number of the request in events, unique among the live ones; 0 if it has one sequence only. */
  int parentNumber() {
    return parentNumber;
  }

  Mailbox mailbox() {
    return mailbox;
  }

  CompletableFuture<List<Integer>> accepted() {
    return accepted;
  }

  CompletableFuture<Completion> completion() {
    return completion;
  }

  int[] promptIds() {
    return promptIds;
  }

  RequestRecord[] records() {
    return records;
  }

  /** Has what becomes of drafts gathered for the answer. Before the request enters the inbox. */
  void gather(RequestSpeculation figures) {
    speculation = figures;
  }

  /** A step gave tokens; of its drafts so many were checked and right. Output thread. */
  void draftsChecked(int drafted, int accepted) {
    RequestSpeculation figures = speculation;
    if (figures != null && drafted > 0) {
      figures.add(drafted, accepted);
    }
  }

  /** The prompt is tokenised and the records are made. */
  void prepare(int[] ids, RequestRecord[] sequenceRecords) {
    promptIds = ids;
    records = sequenceRecords;
  }

  /**
   * It is about to enter the inbox: the gate counts its prompts, from now until {@link #leave}. An end asked for from
   * now on is passed on to the engine, which ignores it if it has not met the request; one asked for before is found by
   * the engine when it takes the request in.
   */
  void admitted() {
    admitted = true;
  }

  /** True if the gate counts its prompts, or has counted them. Any thread. */
  boolean isAdmitted() {
    return admitted;
  }

  /** The gate counts none of its sequences any more, whichever have ended before. Any thread. */
  void leave(AdmissionGate gate) {
    for (RequestRecord record : records) {
      record.leave(gate);
    }
  }

  /** It is in the inbox. */
  void entered() {
    accepted.completeAsync(this::promptIdList, FOREIGN_CODE);
  }

  void cancel() {
    abort(CANCELLED);
  }

  /** Asks for the end; the first cause stays. */
  void abort(String cause) {
    if (abortCause.compareAndSet(null, cause) && admitted) {
      aborter.accept(this);
    }
  }

  /** Asks for the end with an error; the first one stays. */
  void fail(EngineException cause) {
    failure.compareAndSet(null, cause);
    abort(FAILED);
  }

  /** A listener threw. */
  void listenerFailed(Throwable cause) {
    fail(new RequestFailedException(requestId, cause));
  }

  /** Why it was aborted, or null. */
  @Nullable String abortCause() {
    return abortCause.get();
  }

  /** Notes that tokens of a sequence have come. Output thread. */
  void tokensArrived(long batchNanos, long pickUpNanos) {
    if (firstPickUpNanos == 0) {
      firstPickUpNanos = pickUpNanos;
      firstTokenNanos = batchNanos;
    }
    lastTokenNanos = batchNanos;
  }

  /**
   * Notes that a sequence has ended. Output thread.
   *
   * @return true if it was the last
   */
  boolean sequenceEnded(RequestRecord record) {
    queuedNanos = earlier(queuedNanos, record.queuedNanos());
    scheduledNanos = earlier(scheduledNanos, record.scheduledNanos());
    endedSequences++;
    return endedSequences == records.length;
  }

  /** Completes the futures, with its failure if it has one. Called once, by whoever ends the request. */
  void complete(long endNanos) {
    EngineException problem = failure.get();
    mailbox.close(problem);
    if (problem != null) {
      Thread.startVirtualThread(
          () -> {
            accepted.completeExceptionally(problem);
            completion.completeExceptionally(problem);
          });
    } else {
      Completion result = result(endNanos);
      Thread.startVirtualThread(
          () -> {
            accepted.complete(result.promptTokenIds());
            completion.complete(result);
          });
    }
  }

  private Completion result(long endNanos) {
    int cached = records.length == 0 ? 0 : records[0].cachedTokens();
    Usage usage = new Usage(promptIds.length, cached, mailbox.generatedTokens());
    Timings timings =
        new Timings(
            between(queuedNanos, scheduledNanos),
            between(scheduledNanos, firstTokenNanos),
            between(firstTokenNanos, lastTokenNanos),
            between(arrivalNanos, firstPickUpNanos),
            between(arrivalNanos, endNanos));
    return new Completion(requestId, promptIdList(), mailbox.choices(), usage, timings, speculation);
  }

  private List<Integer> promptIdList() {
    List<Integer> list = new ArrayList<>(promptIds.length);
    for (int id : promptIds) {
      list.add(id);
    }
    return List.copyOf(list);
  }

  private static long earlier(long nanos, long other) {
    return nanos == 0 || (other != 0 && other < nanos) ? other : nanos;
  }

  private static Duration between(long from, long to) {
    return from == 0 || to == 0 ? Duration.ZERO : Duration.ofNanos(to - from);
  }
}
