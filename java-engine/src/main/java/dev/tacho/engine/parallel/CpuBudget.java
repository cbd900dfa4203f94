package dev.tacho.engine.parallel;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * How many threads can run at the same time here: processors of the JVM, and the CPU quota of its cgroup. The JVM
 * rounds a quota up (1.5 processors become 2), which is right for blocking threads but not for a team that meets at
 * barriers: the thread that is stopped by the quota holds up all. So the quota is rounded down here, to 1 at least.
 *
 * @param processors processors that the JVM sees
 * @param quota processors' worth of time that the cgroup grants, infinite if it sets no limit
 */
public record CpuBudget(int processors, double quota) {
  /** Checks the budget. */
  public CpuBudget {
    if (processors < 1 || !(quota > 0)) {
      throw new IllegalArgumentException(processors + " processors with a quota of " + quota);
    }
  }

  /** The budget of this process; what cannot be read sets no limit. */
  public static CpuBudget read() {
    return read(Runtime.getRuntime().availableProcessors(), Path.of("/proc/self/cgroup"), Path.of("/sys/fs/cgroup"));
  }

  /**
   * The budget by the files of a cgroup.
   *
   * @param processors processors that the JVM sees
   * @param membership lines {@code hierarchy:controllers:path} as in /proc/self/cgroup
   * @param root where the cgroup file systems are mounted
   */
  static CpuBudget read(int processors, Path membership, Path root) {
    double quota = Double.POSITIVE_INFINITY;
    for (String line : lines(membership)) {
      String[] fields = line.split(":", 3);
      if (fields.length == 3 && fields[1].isEmpty()) {
        quota = Math.min(quota, smallest(root, fields[2], CpuBudget::unifiedQuota));
      } else if (fields.length == 3 && List.of(fields[1].split(",")).contains("cpu")) {
        quota = Math.min(quota, smallest(root.resolve("cpu"), fields[2], CpuBudget::cfsQuota));
      }
    }
    return new CpuBudget(processors, quota);
  }

  /** Threads of a team that is to run without being stopped. */
  public int threads() {
    return (int) Math.max(1, Math.min(processors, Math.floor(quota)));
  }

  /** Reads one directory of a cgroup file system. */
  private interface QuotaFile {
    double quota(Path group);
  }

  /** The smallest limit from the group up to the root; in a container the path may not exist, then the root counts. */
  private static double smallest(Path root, String group, QuotaFile file) {
    double quota = file.quota(root);
    Path path = root;
    for (Path name : Path.of(group.isEmpty() ? "/" : group).normalize()) {
      path = path.resolve(name);
      quota = Math.min(quota, file.quota(path));
    }
    return quota;
  }

  /** Version 2: {@code cpu.max} holds "quota period" in microseconds, or "max period". */
  private static double unifiedQuota(Path group) {
    List<String> lines = lines(group.resolve("cpu.max"));
    return lines.isEmpty() ? Double.POSITIVE_INFINITY : ratio(List.of(lines.getFirst().trim().split("\\s+")));
  }

  /** Version 1: two files, a quota of -1 for none. */
  private static double cfsQuota(Path group) {
    List<String> fields = new ArrayList<>(lines(group.resolve("cpu.cfs_quota_us")));
    fields.addAll(lines(group.resolve("cpu.cfs_period_us")));
    return ratio(fields);
  }

  private static double ratio(List<String> quotaAndPeriod) {
    if (quotaAndPeriod.size() == 2) {
      try {
        double quota = Double.parseDouble(quotaAndPeriod.get(0).trim());
        double period = Double.parseDouble(quotaAndPeriod.get(1).trim());
        if (quota > 0 && period > 0) {
          return quota / period;
        }
      } catch (NumberFormatException e) {
        return Double.POSITIVE_INFINITY; // the word "max"
      }
    }
    return Double.POSITIVE_INFINITY;
  }

  private static List<String> lines(Path file) {
    try {
      return Files.isRegularFile(file) ? Files.readAllLines(file) : List.of();
    } catch (IOException e) {
      return List.of();
    }
  }
}
