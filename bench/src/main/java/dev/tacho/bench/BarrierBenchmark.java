package dev.tacho.bench;

import dev.tacho.engine.parallel.TeamTask;
import dev.tacho.engine.parallel.WorkerTeam;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What it costs a team to meet, in microseconds: a task of 1,000 barriers and nothing else, launch and wait included,
 * so a thousandth of a sample is a barrier; and an empty task. Needs a processor a member that nobody else uses: a
 * member that is kept from running is measured with the others' wait.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class BarrierBenchmark {
  private static final int BARRIERS = 1000;

  /** Members. */
  @Param({"2"})
  int size;

  private final TeamTask meet =
      member -> {
        for (int i = 0; i < BARRIERS; i++) {
          member.barrier();
        }
      };
  private final TeamTask nothing = member -> {};
  private WorkerTeam team;

  /** Starts the threads. */
  @Setup
  public void setUp() {
    team = new WorkerTeam("barrier", size);
  }

  /** Ends them. */
  @TearDown
  public void tearDown() {
    team.close();
  }

  /** 1,000 meetings. */
  @Benchmark
  public void thousandBarriers() {
    team.launch(meet);
    team.await();
  }

  /** A launch and its end. */
  @Benchmark
  public void emptyTask() {
    team.launch(nothing);
    team.await();
  }
}
