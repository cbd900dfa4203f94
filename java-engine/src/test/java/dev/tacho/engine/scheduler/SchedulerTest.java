package dev.tacho.engine.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.InvalidRequestException;
import dev.tacho.engine.PromptTooLongException;
import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.metrics.event.FinishReason;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class SchedulerTest {
  private static SchedulerConfig.Builder config() {
    return SchedulerConfig.builder().maxNumBatchedTokens(64).maxNumSeqs(8).maxModelLen(64);
  }

  private static SchedulerWorld world() {
    return new SchedulerWorld(config(), 33, 4, true);
  }

  private static Sequence.Builder request(String id, int prompt, int maxTokens) {
    return SchedulerWorld.sequence(id, prompt, maxTokens);
  }

  @Test
  void asManySequencesAsAreReadAheadGetAndPublishTheirBlocks() {
    int sequences = 700;
    SchedulerConfig.Builder config = config().maxNumBatchedTokens(5 * sequences).maxNumSeqs(sequences);
    SchedulerWorld w = new SchedulerWorld(config, 8 * sequences, 4, true);
    for (int i = 0; i < sequences; i++) {
      SamplerState sampler = new SamplerState(SamplingParams.greedy().withMaxTokens(40), Set.of(), 0);
      w.add(Sequence.builder("r" + i, new int[] {i, 1, 2, 3, 4}, sampler));
    }
    for (int step = 0; step < 21; step++) {
      w.step();
    }
    assertThat(w.scheduler.running()).hasSize(sequences);
    for (Sequence s : w.scheduler.running()) {
      assertThat(s.computedTokens()).as(s.requestId()).isEqualTo(25);
      assertThat(s.blockTable().size()).as(s.requestId()).isEqualTo(7);
      for (int i = 0; i < 7; i++) {
        assertThat(w.scheduler.pool().isCached(s.blockTable().block(i))).as("block %d of %s", i, s).isEqualTo(i < 6);
      }
    }
    assertThat(w.scheduler.audit()).isTrue();
  }

  @Test
  void reportsAStepInOrder() {
    SchedulerWorld w = world();
    Sequence a = w.add(request("a", 5, 2));
    Sequence b = w.add(request("b", 9, 1));
    assertThat(w.scheduler.numWaiting()).isEqualTo(2);
    w.step();
    assertThat(w.listener.order)
        .containsExactly(
            "QUEUED a",
            "QUEUED b",
            "SCHEDULED a",
            "SCHEDULED b",
            "begin 1",
            "tokens a 1",
            "tokens b 1",
            "finished b LENGTH",
            "end");
    assertThat(w.listener.prefills.get("b")).isEqualTo(new RecordingListener.Prefill(9, 0, 0, 8));
    assertThat(w.outputs.size()).isEqualTo(2);
    assertThat(w.outputs.finishReason(0)).isNull();
    assertThat(w.outputs.finishReason(1)).isEqualTo(FinishReason.LENGTH);
    assertThat(w.scheduler.running()).containsExactly(a);
    assertThat(b.finishReason()).isEqualTo(FinishReason.LENGTH);
    assertThat(b.blockTable().size()).isZero();
  }

  @Test
  void identicalPromptsArePlannedAlikeInOneBatch() {
    // User case 21, the scheduler's half.
    SchedulerWorld w = new SchedulerWorld(config(), 33, 4, false);
    int[] prompt = {7, 8, 9, 7, 8};
    for (int i = 0; i < 6; i++) {
      w.add(SchedulerWorld.sequence("same" + i, prompt, 3));
    }
    for (int step = 0; step < 3; step++) {
      StepPlan plan = w.schedule();
      assertThat(plan.numSequences()).isEqualTo(6);
      for (int i = 0; i < 6; i++) {
        assertThat(plan.scheduledTokens(i)).isEqualTo(step == 0 ? 5 : 1);
        assertThat(plan.startPosition(i)).isEqualTo(step == 0 ? 0 : 4 + step);
        assertThat(plan.samples(i)).isTrue();
      }
      w.result.reset();
      for (int i = 0; i < 6; i++) {
        w.result.nextSequence();
        w.result.addToken(50 + step, null);
      }
      w.scheduler.update(plan, w.result, ++w.nanos, w.outputs);
    }
    assertThat(w.listener.finished).hasSize(6);
  }

  @Test
  void abortOfAWaitingSequence() {
    SchedulerWorld w = world();
    Sequence a = w.add(request("a", 5, 9));
    assertThat(w.abort(a)).isTrue();
    assertThat(w.abort(a)).as("again").isFalse();
    assertThat(w.scheduler.hasWork()).isFalse();
    assertThat(w.listener.finished).containsEntry("a", FinishReason.ABORT);
  }

  @Test
  void abortBeforeTheSchedulerHasItDoesNothing() {
    SchedulerWorld w = world();
    Sequence a = request("a", 5, 9).build();
    assertThat(w.abort(a)).isFalse();
    assertThat(a.state()).isEqualTo(SequenceState.NEW);
  }

  @Test
  void abortBetweenStepsFreesAtOnce() {
    // User case 3: no other request is needed for the gauges to go to zero.
    SchedulerWorld w = world();
    Sequence a = w.add(request("a", 5, 9));
    Sequence b = w.add(request("b", 40, 9));
    w.step();
    assertThat(w.abort(a)).isTrue();
    assertThat(w.abort(b)).isTrue();
    assertThat(w.pool.usage()).isZero();
    assertThat(w.scheduler.numRunning()).isZero();
    assertThat(w.scheduler.hasWork()).isFalse();
    assertThat(w.scheduler.audit()).isTrue();
  }

  @Test
  void abortWithAStepInFlightHoldsTheBlocksUntilItHasEnded() {
    SchedulerWorld w = world();
    Sequence a = w.add(request("a", 5, 9));
    w.add(request("b", 5, 9));
    StepPlan plan = w.schedule();
    assertThat(w.abort(a)).isTrue();
    assertThat(w.pool.numFree()).as("fenced").isEqualTo(28);
    assertThat(w.scheduler.numRunning()).isEqualTo(1);
    assertThat(w.scheduler.audit()).isTrue();
    w.update(plan);
    assertThat(w.pool.numFree()).isEqualTo(30);
    assertThat(w.outputs.size()).as("its token is thrown away").isEqualTo(1);
    assertThat(w.outputs.sequence(0).requestId()).isEqualTo("b");
    assertThat(w.listener.order).doesNotContain("tokens a 1");
  }

  @Test
  void abortOfTheLastSequenceInFlightIsStillWork() {
    SchedulerWorld w = world();
    Sequence a = w.add(request("a", 5, 9));
    StepPlan plan = w.schedule();
    w.abort(a);
    assertThat(w.scheduler.hasUnfinished()).isFalse();
    assertThat(w.scheduler.hasWork()).as("the step must be awaited").isTrue();
    w.update(plan);
    assertThat(w.scheduler.hasWork()).isFalse();
    assertThat(w.pool.usage()).isZero();
  }

  @Test
  void abortWithoutTheFenceFreesAtOnce() {
    SchedulerWorld w = new SchedulerWorld(config().guardBlocks(false), 33, 4, true);
    Sequence a = w.add(request("a", 5, 9));
    StepPlan plan = w.schedule();
    w.abort(a);
    assertThat(w.pool.usage()).isZero();
    w.update(plan);
    assertThat(w.outputs.size()).isZero();
  }

  @Test
  void abortOfAPreemptedSequenceKeepsItsPreemption() {
    // User case 7.
    SchedulerWorld w = new SchedulerWorld(config().maxModelLen(24), 7, 4, true);
    w.add(request("a", 12, 12));
    Sequence b = w.add(request("b", 12, 12));
    while (b.state() != SequenceState.PREEMPTED) {
      w.step();
    }
    assertThat(w.listener.preemptions).isEqualTo(1);
    assertThat(w.abort(b)).isTrue();
    assertThat(b.numPreemptions()).isEqualTo(1);
    assertThat(w.scheduler.numWaiting()).isZero();
    assertThat(w.scheduler.audit()).isTrue();
  }

  @Test
  void aFailedStepEndsItsSequencesAndLeavesNothingInTheCache() {
    SchedulerWorld w = world();
    int[] prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    w.add(SchedulerWorld.sequence("a", prompt, 9));
    w.step();
    Sequence b = w.add(SchedulerWorld.sequence("b", new int[] {1, 2, 3, 4, 11, 12, 13, 14, 15}, 9));
    Sequence gone = w.add(SchedulerWorld.sequence("gone", new int[] {21, 22, 23, 24, 25}, 9));
    StepPlan plan = w.schedule();
    w.abort(gone);
    assertThat(w.pool.numCached()).isEqualTo(4);
    w.fail(plan);
    assertThat(w.pool.numCached()).as("only what step 1 has computed").isEqualTo(2);
    assertThat(w.outputs.size()).isEqualTo(2);
    assertThat(w.outputs.finishReason(0)).isEqualTo(FinishReason.ERROR);
    assertThat(w.outputs.tokenCount(0)).isZero();
    assertThat(b.finishReason()).isEqualTo(FinishReason.ERROR);
    assertThat(gone.finishReason()).isEqualTo(FinishReason.ABORT);
    assertThat(w.pool.usage()).isZero();
    assertThat(w.scheduler.audit()).isTrue();
    assertThat(w.scheduler.hasWork()).isFalse();

    Sequence again = w.add(SchedulerWorld.sequence("again", prompt, 2));
    w.step();
    assertThat(again.computedTokens()).isEqualTo(9);
    assertThat(w.listener.prefills).containsEntry("again", new RecordingListener.Prefill(9, 8, 0, 0));
  }

  @Test
  void aFailedStepAndTheOneBehindItLeaveTheRestOfTheCache() {
    SchedulerWorld w = new SchedulerWorld(config().asyncScheduling(true), 33, 4, true);
    w.add(SchedulerWorld.sequence("before", new int[] {1, 2, 3, 4, 5, 6, 7, 8, 9}, 1));
    w.update(w.schedule());
    assertThat(w.pool.numCached()).isEqualTo(2);
    Sequence a = w.add(SchedulerWorld.sequence("a", new int[] {1, 2, 3, 4, 11, 12, 13, 14, 15}, 9));
    StepPlan first = w.schedule();
    StepPlan behind = w.schedule();
    assertThat(behind.sequence(0)).isSameAs(a);
    w.fail(first);
    w.fail(behind);
    assertThat(a.finishReason()).isEqualTo(FinishReason.ERROR);
    assertThat(w.pool.numCached()).as("what the step before them has computed").isEqualTo(2);
    assertThat(w.scheduler.audit()).isTrue();
  }

  @Test
  void aVictimPlannedBeforeLeavesNothingUncomputedInTheCache() {
    SchedulerConfig.Builder config =
        config().policy(SchedulingPolicy.PRIORITY).maxNumBatchedTokens(16).longPrefillTokenThreshold(8);
    SchedulerWorld w = new SchedulerWorld(config, 13, 4, true);
    Sequence victim = w.add(request("victim", 40, 4).priority(5));
    w.step();
    w.add(request("urgent", 7, 6).priority(0));
    w.step();
    w.step();
    // The victim's chunk takes the last two of twelve blocks, then the urgent one needs its third.
    StepPlan plan = w.schedule();
    assertThat(w.listener.preempted).containsExactly("victim");
    assertThat(plan.numSequences()).isEqualTo(1);
    assertThat(plan.numTokens()).isEqualTo(1);
    assertThat(w.pool.numCached()).as("eight blocks of the victim, two of the urgent one").isEqualTo(10);
    w.update(plan);
    while (victim.state() == SequenceState.PREEMPTED) {
      plan = w.schedule();
      w.update(plan);
    }
    assertThat(w.listener.preemptedQueries).isEqualTo(40);
    assertThat(w.listener.preemptedHits).isLessThanOrEqualTo(32);
    assertThat(w.scheduler.audit()).isTrue();
  }

  @Test
  void aStepIsGivenBackOnceAndInOrder() {
    SchedulerWorld w = world();
    w.add(request("a", 60, 4));
    w.add(request("b", 60, 4));
    StepPlan first = w.schedule();
    StepPlan second = w.schedule();
    assertThat(first.numTokens()).isEqualTo(64);
    assertThat(second.numTokens()).as("the rest of b's prompt").isEqualTo(56);
    assertThatThrownBy(w::schedule).isInstanceOf(IllegalStateException.class).hasMessageContaining("step 1");
    w.update(first);
    w.update(second);
    assertThatThrownBy(() -> w.scheduler.update(second, w.result, ++w.nanos, w.outputs))
        .hasMessage("step 2 was given back before");
  }

  @Test
  void anEmptyPlanNeedNotComeBack() {
    SchedulerWorld w = world();
    for (int i = 0; i < 5; i++) {
      assertThat(w.schedule().numTokens()).isZero();
    }
    assertThat(w.scheduler.hasWork()).isFalse();
    w.add(request("a", 5, 1));
    assertThat(w.step()).isEqualTo(5);
    assertThat(w.scheduler.hasWork()).isFalse();
  }

  @Test
  void aResultOfAnotherStepIsRefused() {
    SchedulerWorld w = world();
    w.add(request("a", 5, 1));
    StepPlan plan = w.schedule();
    assertThatThrownBy(() -> w.scheduler.update(plan, new StepResult(), 1, w.outputs))
        .hasMessage("step 1 has 1 sequences, its result 0");
    w.update(plan);
    assertThat(w.listener.finished).containsKey("a");
  }

  @Test
  void requestsThatCanNeverRunAreRefused() {
    SchedulerWorld w = new SchedulerWorld(config(), 11, 4, true);
    assertThatThrownBy(() -> w.add(request("long", 64, 1)))
        .isInstanceOf(PromptTooLongException.class)
        .hasMessageContainingAll("64");
    assertThatThrownBy(() -> w.add(request("large", 30, 12)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContainingAll("42 tokens", "11 blocks", "which has 10");
    w.add(request("fits", 30, 11));
    while (w.scheduler.hasWork()) {
      w.step();
    }
    assertThat(w.listener.finished).containsOnlyKeys("fits");
  }

  @Test
  void userCase18BlockedSequencesTakeNoPlaceAndFinishInTheEnd() {
    SchedulerWorld w = new SchedulerWorld(config().maxNumSeqs(2).policy(SchedulingPolicy.PRIORITY), 33, 4, true);
    Sequence first = w.add(request("first", 5, 2).blocked(true));
    Sequence second = w.add(request("second", 5, 2).blocked(true));
    Sequence never = w.add(request("never", 5, 2).blocked(true));
    w.add(request("a", 5, 2));
    w.add(request("b", 5, 2));
    assertThat(w.scheduler.numDeferred()).isEqualTo(3);
    assertThat(w.scheduler.numWaiting()).isEqualTo(2);
    w.step();
    w.step();
    assertThat(w.listener.finished).containsOnlyKeys("a", "b");
    assertThat(w.step()).as("nobody can run").isZero();
    w.scheduler.unblock(second);
    w.scheduler.unblock(first);
    w.step();
    assertThat(first.outputLength()).isEqualTo(1);
    assertThat(second.outputLength()).isEqualTo(1);
    w.step();
    assertThat(w.abort(never)).isTrue();
    assertThat(w.scheduler.numDeferred()).isZero();
    assertThat(w.scheduler.hasWork()).isFalse();
    assertThat(w.listener.finished).hasSize(5);
  }

  @Test
  void adaptersBeyondTheBudgetWaitAndLetOthersGoAhead() {
    SchedulerWorld w = new SchedulerWorld(config().maxLoras(1), 33, 4, true);
    w.add(request("x1", 5, 2).adapterName("x"));
    Sequence y = w.add(request("y", 5, 2).adapterName("y"));
    w.add(request("x2", 5, 2).adapterName("x"));
    w.add(request("base", 5, 2));
    w.step();
    assertThat(w.scheduler.numRunning()).isEqualTo(3);
    assertThat(w.scheduler.numDeferred()).isEqualTo(1);
    w.step();
    assertThat(y.state()).isEqualTo(SequenceState.WAITING);
    w.step();
    assertThat(w.scheduler.running()).containsExactly(y);
    assertThat(w.scheduler.numDeferred()).isZero();
  }

  @Test
  void pausesHoldBackAdmissionsOrEverything() {
    SchedulerWorld w = world();
    w.add(request("a", 5, 4));
    w.step();
    w.add(request("b", 5, 4));
    w.scheduler.setPause(PauseState.PAUSED_NEW);
    assertThat(w.step()).isEqualTo(1);
    w.scheduler.setPause(PauseState.PAUSED_ALL);
    assertThat(w.step()).isZero();
    w.scheduler.setPause(PauseState.UNPAUSED);
    assertThat(w.step()).isEqualTo(6);
  }

  @Test
  void draftsAreCheckedAndTheRejectedOnesComputedAgain() {
    SchedulerWorld w = new SchedulerWorld(config().numSpeculativeTokens(3), 33, 4, true);
    Sequence a = w.add(request("a", 5, 20));
    w.step();
    int next = SchedulerWorld.token(a, 6);
    w.scheduler.setDrafts(a, new int[] {next, 9, 9}, 3);
    StepPlan plan = w.schedule();
    assertThat(plan.scheduledTokens(0)).isEqualTo(4);
    assertThat(plan.numDrafts(0)).isEqualTo(3);
    assertThat(plan.draft(0, 0)).isEqualTo(next);
    w.update(plan);
    assertThat(w.outputs.tokenCount(0)).isEqualTo(2);
    assertThat(a.length()).isEqualTo(8);
    assertThat(a.computedTokens()).isEqualTo(7);
    assertThat(w.listener.draftCounts).containsExactly(3);
    assertThat(w.listener.acceptedCounts).containsExactly(1);
    assertThatThrownBy(() -> w.scheduler.setDrafts(a, new int[4], 4))
        .hasMessage("4 drafts, num_speculative_tokens is 3");
  }

  @Test
  void aSequenceIsAddedOnce() {
    SchedulerWorld w = world();
    Sequence a = w.add(request("a", 5, 1));
    assertThatThrownBy(() -> w.scheduler.add(a, 1)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void resetOfTheCacheDuringAStepThrowsItsTokensAway() {
    SchedulerWorld w = world();
    Sequence a = w.add(request("a", 9, 3));
    StepPlan plan = w.schedule();
    assertThat(w.scheduler.resetPrefixCache(false, ++w.nanos)).isFalse();
    assertThat(w.scheduler.resetPrefixCache(true, ++w.nanos)).isTrue();
    w.update(plan);
    assertThat(w.outputs.size()).isZero();
    assertThat(a.outputLength()).isZero();
    w.step();
    assertThat(a.outputLength()).isEqualTo(1);
    assertThat(w.scheduler.running()).isEqualTo(List.of(a));
  }

  @Test
  @Timeout(20)
  void userCase19NoStepWalksOverTheQueue() {
    SchedulerWorld w = new SchedulerWorld(config().maxNumSeqs(2), 33, 4, true);
    w.add(request("a", 5, 30));
    w.add(request("b", 5, 30));
    w.step();
    for (int i = 0; i < 1000; i++) {
      w.add(request("w" + i, 5, 2));
    }
    Sequence first = w.scheduler.waiting().getFirst();
    Sequence second = Objects.requireNonNull(first.next);
    // Whoever walks over the queue now walks for ever.
    first.next = first;
    for (int i = 0; i < 10; i++) {
      assertThat(w.step()).isEqualTo(2);
      assertThat(w.scheduler.numWaiting()).isEqualTo(1000);
      assertThat(w.scheduler.numDeferred()).isZero();
      assertThat(w.scheduler.hasUnfinished()).isTrue();
      assertThat(w.scheduler.longestWaiting()).isSameAs(first);
    }
    first.next = second;
    w.add(request("last", 5, 2));
    assertThat(w.scheduler.waiting()).hasSize(1001);
  }
}
