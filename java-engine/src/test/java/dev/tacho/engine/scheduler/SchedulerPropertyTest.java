package dev.tacho.engine.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvGroup;
import dev.tacho.engine.kv.PrefixHashAlgorithm;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Random worlds: whatever is configured and asked for, the invariants of a step hold and everything ends. The property
 * {@code tacho.worlds} says how many.
 */
class SchedulerPropertyTest {
  private static final int SEEDS = Integer.getInteger("tacho.worlds", 300);

  static LongStream seeds() {
    return LongStream.rangeClosed(1, SEEDS);
  }

  /** Output of each request when it ran to its end, to be the same in another world. */
  private final Map<String, List<Integer>> texts = new HashMap<>();

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void invariantsHold(long seed) {
    run(seed, true);
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void tokensDependOnTheRequestAlone(long seed) {
    // Roomy and tight worlds preempt differently; what a sequence says must not depend on that.
    run(seed, false);
    Map<String, List<Integer>> first = Map.copyOf(texts);
    texts.clear();
    run(seed + 1_000_000, false);
    first.forEach(
        (id, text) -> {
          // Contexts of different length end a text at different places.
          List<Integer> other = texts.getOrDefault(id, text);
          int common = Math.min(text.size(), other.size());
          assertThat(other.subList(0, common)).as(id).isEqualTo(text.subList(0, common));
        });
  }

  private void run(long seed, boolean aborts) {
    Random random = new Random(seed);
    int blockTokens = 1 + random.nextInt(8);
    int maxModelLen = 8 + random.nextInt(60);
    int oneSequence = (maxModelLen + blockTokens - 1) / blockTokens;
    int blocks = 1 + oneSequence + random.nextInt(2 * oneSequence);
    SchedulerConfig.Builder config = config(random, maxModelLen);
    List<KvGroup> groups = groups(random);
    KvBlockPool pool = new KvBlockPool(groups.size() * blocks, blockTokens, random.nextBoolean());
    SchedulerWorld w = new SchedulerWorld(config, pool, groups);
    List<Sequence> all = new ArrayList<>();
    int requests = 3 + random.nextInt(25);
    Deque<StepPlan> inFlight = new ArrayDeque<>();
    int depth = w.scheduler.config().asyncScheduling() ? 2 : 1;
    int steps = 0;
    while (all.size() < requests || w.scheduler.hasWork()) {
      while (all.size() < requests && random.nextInt(3) == 0) {
        all.add(w.add(request(random, all.size(), maxModelLen)));
      }
      if (aborts && random.nextInt(12) == 0 && !all.isEmpty()) {
        w.abort(all.get(random.nextInt(all.size())));
      }
      StepPlan plan = w.schedule();
      check(w, plan);
      w.listener.check(w.scheduler);
      inFlight.addLast(plan);
      if (aborts && random.nextInt(12) == 0 && !all.isEmpty()) {
        w.abort(all.get(random.nextInt(all.size())));
      }
      if (aborts && random.nextInt(60) == 0) {
        // Steps planned after one that failed build on it.
        while (!inFlight.isEmpty()) {
          w.fail(inFlight.removeFirst());
        }
      } else if (inFlight.size() == depth) {
        w.update(inFlight.removeFirst());
        if (depth == 1) {
          w.propose();
        }
      }
      if (aborts && random.nextInt(80) == 0 && w.scheduler.resetPrefixCache(random.nextBoolean(), ++w.nanos)) {
        assertThat(w.pool.numCached()).isZero();
      }
      w.listener.check(w.scheduler);
      assertThat(w.scheduler.audit()).as("audit after step " + plan.step()).isTrue();
      assertThat(++steps).as("steps").isLessThan(20_000);
    }
    assertThat(w.pool.usage()).as("all blocks free at the end").isZero();
    assertThat(w.listener.finished).as("each ends once").hasSize(requests);
    long outputs = all.stream().mapToLong(Sequence::outputLength).sum();
    assertThat(w.listener.tokens).isEqualTo(outputs);
    all.forEach(s -> assertThat(w.listener.tokensOf(s)).as(s.requestId()).isEqualTo(s.outputLength()));
    if (w.scheduler.config().policy() == SchedulingPolicy.FCFS && w.scheduler.config().maxLoras() == 0) {
      // First come, first served: nobody is ever overtaken, so nobody starves.
      List<String> arrived = new ArrayList<>(all.stream().map(Sequence::requestId).toList());
      arrived.retainAll(w.listener.admittedNew);
      assertThat(w.listener.admittedNew).as("order of admission").isEqualTo(arrived);
    }
    assertThat(w.listener.preemptions).isEqualTo(all.stream().mapToLong(Sequence::numPreemptions).sum());
    if (!aborts) {
      all.forEach(s -> texts.put(s.requestId(), text(s)));
    }
  }

  private static SchedulerConfig.Builder config(Random random, int maxModelLen) {
    boolean chunked = random.nextInt(4) > 0;
    int seqs = 1 + random.nextInt(8);
    int budget = Math.max(chunked ? 1 : maxModelLen, seqs) + random.nextInt(40);
    SchedulerConfig.Builder config =
        SchedulerConfig.builder()
            .maxNumBatchedTokens(budget)
            .maxNumSeqs(seqs)
            .maxNumActiveSeqs(1 + random.nextInt(seqs))
            .maxModelLen(maxModelLen)
            .enableChunkedPrefill(chunked)
            .policy(random.nextBoolean() ? SchedulingPolicy.FCFS : SchedulingPolicy.PRIORITY)
            .reserveFullSequence(random.nextInt(4) > 0)
            .watermark(random.nextInt(3) == 0 ? 0.1 : 0)
            .guardBlocks(random.nextBoolean())
            .asyncScheduling(random.nextInt(3) == 0)
            .numSpeculativeTokens(random.nextInt(3) == 0 ? 1 + random.nextInt(3) : 0)
            .maxLoras(random.nextInt(3))
            .prefixHashAlgorithm(PrefixHashAlgorithm.values()[random.nextInt(2)])
            .prefillScheduleInterval(random.nextInt(4) == 0 ? 1 + random.nextInt(4) : 1);
    if (chunked && random.nextBoolean()) {
      config.longPrefillTokenThreshold(1 + random.nextInt(maxModelLen));
      config.adaptiveLongPrefillThreshold(random.nextBoolean());
    }
    return config;
  }

  private static List<KvGroup> groups(Random random) {
    KvGroup window = KvGroup.window(1 + random.nextInt(20), random.nextBoolean());
    return switch (random.nextInt(4)) {
      case 0 -> List.of(window);
      case 1 -> List.of(KvGroup.full(), window);
      default -> List.of(KvGroup.full());
    };
  }

  /** The same index gives the same request in every world that has room for it. */
  private static Sequence.Builder request(Random random, int index, int maxModelLen) {
    int prompt = Math.min(1 + (index * 7) % 40, maxModelLen - 1);
    int[] tokens = new int[prompt];
    for (int i = 0; i < prompt; i++) {
      // Few different beginnings, so that prefixes are shared.
      tokens[i] = 100 + i + (i < 12 ? index % 3 : index) * 1000;
    }
    String id = "r" + index + "-" + prompt;
    return SchedulerWorld.sequence(id, tokens, 1 + (index * 5) % 30)
        .priority(random.nextInt(3))
        .adapterName(List.of("", "x", "y").get(index / 2 % 3))
        .arrivalNanos(index);
  }

  private static List<Integer> text(Sequence s) {
    List<Integer> text = new ArrayList<>();
    for (int i = s.promptLength(); i < s.length(); i++) {
      text.add(s.token(i));
    }
    return text;
  }

  private static void check(SchedulerWorld w, StepPlan plan) {
    SchedulerConfig config = w.scheduler.config();
    assertThat(plan.numTokens()).isLessThanOrEqualTo(config.maxNumScheduledTokens());
    assertThat(w.scheduler.numRunning()).isLessThanOrEqualTo(config.maxNumActiveSeqs());
    int sum = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      Sequence s = plan.sequence(i);
      assertThat(s.state()).isEqualTo(SequenceState.RUNNING);
      assertThat(plan.scheduledTokens(i)).isPositive();
      assertThat(plan.startPosition(i) + plan.scheduledTokens(i)).isEqualTo(s.computedTokens());
      assertThat(s.blockTable().size() * w.pool.blockTokens()).isGreaterThanOrEqualTo(s.computedTokens());
      assertThat(plan.samples(i)).isEqualTo(!s.progress().midPrompt);
      sum += plan.scheduledTokens(i);
    }
    assertThat(plan.numTokens()).isEqualTo(sum);
    assertThat(w.scheduler.running()).containsAll(sequences(plan));
    if (!config.asyncScheduling() && config.prefillScheduleInterval() == 1) {
      assertThat(sum > 0).as("something moves").isEqualTo(w.scheduler.hasUnfinished());
      if (config.policy() == SchedulingPolicy.FCFS && sum > 0) {
        // The one admitted first always gets on, so in turn everybody does: nobody starves.
        assertThat(plan.sequence(0)).isSameAs(w.scheduler.running().getFirst());
      }
    }
    assertThat(w.scheduler.waiting().stream().filter(s -> s.deferred).count()).isEqualTo(w.scheduler.numDeferred());
    if (config.maxLoras() > 0) {
      assertThat(w.scheduler.running().stream().map(Sequence::adapterName).filter(a -> !a.isEmpty()).distinct().count())
          .isLessThanOrEqualTo(config.maxLoras());
    }
  }

  private static List<Sequence> sequences(StepPlan plan) {
    List<Sequence> all = new ArrayList<>();
    for (int i = 0; i < plan.numSequences(); i++) {
      all.add(plan.sequence(i));
    }
    return all;
  }
}
