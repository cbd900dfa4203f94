package dev.tacho.engine.parallel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The quota of a cgroup, from files as the kernel writes them. */
class CpuBudgetTest {
  @TempDir Path dir;

  @Test
  void aQuotaOfTwoAndAHalfProcessorsGivesTwoThreads() throws IOException {
    write("membership", "0::/\n");
    write("root/cpu.max", "250000 100000\n");
    CpuBudget budget = read(8);
    assertThat(budget.quota()).isEqualTo(2.5);
    assertThat(budget.threads()).isEqualTo(2);
  }

  @Test
  void aQuotaBelowOneProcessorGivesOneThread() throws IOException {
    write("membership", "0::/\n");
    write("root/cpu.max", "20000 100000\n");
    assertThat(read(8).threads()).isEqualTo(1);
  }

  @Test
  void noQuotaLeavesTheProcessors() throws IOException {
    write("membership", "0::/app\n");
    write("root/app/cpu.max", "max 100000\n");
    assertThat(read(6).threads()).isEqualTo(6);
  }

  @Test
  void theTightestGroupOnTheWayToTheRootCounts() throws IOException {
    write("membership", "0::/slice/app\n");
    write("root/cpu.max", "max 100000\n");
    write("root/slice/cpu.max", "300000 100000\n");
    write("root/slice/app/cpu.max", "600000 100000\n");
    assertThat(read(8).threads()).isEqualTo(3);
  }

  @Test
  void aQuotaAboveTheProcessorsChangesNothing() throws IOException {
    write("membership", "0::/\n");
    write("root/cpu.max", "1600000 100000\n");
    assertThat(read(4).threads()).isEqualTo(4);
  }

  @Test
  void theFirstVersionOfCgroupsIsRead() throws IOException {
    write("membership", "3:cpu,cpuacct:/app\n2:memory:/app\n");
    write("root/cpu/app/cpu.cfs_quota_us", "150000\n");
    write("root/cpu/app/cpu.cfs_period_us", "100000\n");
    assertThat(read(4).quota()).isEqualTo(1.5);
    write("root/cpu/app/cpu.cfs_quota_us", "-1\n");
    assertThat(read(4).quota()).isInfinite();
  }

  @Test
  void unreadableOrStrangeFilesSetNoLimit() throws IOException {
    assertThat(read(3).threads()).isEqualTo(3);
    write("membership", "nonsense\n0::/gone\n");
    write("root/cpu.max", "a b c\n");
    assertThat(read(3).threads()).isEqualTo(3);
  }

  @Test
  void thisProcessHasABudget() {
    assertThat(CpuBudget.read().threads()).isBetween(1, Runtime.getRuntime().availableProcessors());
  }

  @Test
  void anEmptyBudgetIsRefused() {
    assertThatThrownBy(() -> new CpuBudget(0, 1)).hasMessage("0 processors with a quota of 1.0");
    assertThatThrownBy(() -> new CpuBudget(1, Double.NaN)).isInstanceOf(IllegalArgumentException.class);
  }

  private CpuBudget read(int processors) {
    return CpuBudget.read(processors, dir.resolve("membership"), dir.resolve("root"));
  }

  private void write(String name, String text) throws IOException {
    Path file = dir.resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }
}
