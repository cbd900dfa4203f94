package dev.tacho.bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** How much of the machine's CPU time others take while something is measured: without that, a figure says little. */
final class CpuLoad {
  private static final Path STAT = Path.of("/proc/stat");
  /** Of the fields of a line of CPU times: user, nice, system, idle, iowait, irq, softirq, steal. */
  private static final int FIELDS = 8;

  private static final int IDLE = 3;
  private static final int IO_WAIT = 4;
  private static final double TICKS_IN_A_SECOND = 100;
  private static final double NANOS = 1e9;

  private final double[] atStart;
  private final double ownAtStart;

  private CpuLoad(double[] atStart, double ownAtStart) {
    this.atStart = atStart;
    this.ownAtStart = ownAtStart;
  }

  /** Begins now. */
  static CpuLoad start() throws IOException {
    return new CpuLoad(ticks(), ownSeconds());
  }

  /** CPU time of other processes since then over all CPU time that there was. */
  double foreignShare() throws IOException {
    double[] now = ticks();
    double all = 0;
    double busy = 0;
    for (int i = 0; i < FIELDS; i++) {
      double seconds = (now[i] - atStart[i]) / TICKS_IN_A_SECOND;
      all += seconds;
      busy += i == IDLE || i == IO_WAIT ? 0 : seconds;
    }
    return all == 0 ? 0 : Math.max(0, busy - (ownSeconds() - ownAtStart)) / all;
  }

  private static double[] ticks() throws IOException {
    String line = Files.readAllLines(STAT).getFirst();
    return Arrays.stream(line.split(" +")).skip(1).limit(FIELDS).mapToDouble(Double::parseDouble).toArray();
  }

  private static double ownSeconds() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime() / NANOS;
  }
}
