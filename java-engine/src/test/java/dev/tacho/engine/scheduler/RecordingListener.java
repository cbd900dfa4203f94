package dev.tacho.engine.scheduler;

import dev.tacho.metrics.event.FinishReason;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Keeps what the scheduler reports, for tests to look at and clear. */
class RecordingListener implements SchedulerListener {
  /** One event of one sequence. */
  record Event(String name, long nanos) {}

  /** How a prompt was computed. */
  record Prefill(int prompt, int localCached, int externalCached, int cacheCreation) {}

  final Map<String, List<Event>> events = new HashMap<>();
  final Map<String, Prefill> prefills = new HashMap<>();
  final Map<String, FinishReason> finished = new HashMap<>();
  final List<String> order = new ArrayList<>();
  final List<String> admittedNew = new ArrayList<>();
  final List<String> admittedAgain = new ArrayList<>();
  final List<String> preempted = new ArrayList<>();
  final List<Integer> draftCounts = new ArrayList<>();
  final List<Integer> acceptedCounts = new ArrayList<>();
  long tokens;
  long preemptions;
  long queries;
  long hits;
  long requests;
  long preemptedQueries;
  long preemptedHits;
  long preemptedRequests;
  boolean reset;

  void clearPrefixCounts() {
    requests = 0;
    queries = 0;
    hits = 0;
    preemptedRequests = 0;
    preemptedQueries = 0;
    preemptedHits = 0;
    reset = false;
  }

  private void event(Sequence s, String name, long nanos) {
    events.computeIfAbsent(s.requestId(), id -> new ArrayList<>()).add(new Event(name, nanos));
    order.add(name + " " + s.requestId());
  }

  @Override
  public void queued(Sequence s, long nanos) {
    event(s, "QUEUED", nanos);
  }

  @Override
  public void scheduled(Sequence s, long nanos) {
    event(s, "SCHEDULED", nanos);
    (s.numPreemptions() == 0 ? admittedNew : admittedAgain).add(s.requestId());
  }

  @Override
  public void preempted(Sequence s, long nanos) {
    event(s, "PREEMPTED", nanos);
    preempted.add(s.requestId());
    preemptions++;
  }

  @Override
  public void prefixCacheQueried(Sequence s, int queryTokens, int hitTokens, boolean resumed) {
    if (resumed) {
      preemptedRequests++;
      preemptedQueries += queryTokens;
      preemptedHits += hitTokens;
    } else {
      requests++;
      queries += queryTokens;
      hits += hitTokens;
    }
  }

  @Override
  public void prefixCacheReset() {
    reset = true;
  }

  @Override
  public void outputsBegin(StepPlan plan, long batchNanos) {
    order.add("begin " + plan.step());
  }

  @Override
  public void prefillStats(Sequence s, int prompt, int localCached, int externalCached, int cacheCreation) {
    prefills.put(s.requestId(), new Prefill(prompt, localCached, externalCached, cacheCreation));
  }

  @Override
  public void draftsVerified(Sequence s, int drafts, int accepted) {
    draftCounts.add(drafts);
    acceptedCounts.add(accepted);
  }

  @Override
  public void tokens(Sequence s, int count) {
    tokens += count;
    order.add("tokens " + s.requestId() + " " + count);
  }

  @Override
  public void finished(Sequence s, FinishReason reason, long nanos) {
    if (finished.put(s.requestId(), reason) != null) {
      throw new AssertionError(s.requestId() + " ended twice");
    }
    order.add("finished " + s.requestId() + " " + reason);
  }

  @Override
  public void outputsEnd() {
    order.add("end");
  }
}
