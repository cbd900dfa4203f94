package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import dev.tacho.engine.EngineOption;
import dev.tacho.engine.MemorySize;
import dev.tacho.engine.kernel.KernelSelection;
import dev.tacho.engine.parallel.CpuBudget;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code tacho doctor}: what the JVM and the machine give, and what would be chosen. Loads no model. */
@Command(
    name = "doctor",
    description = "Says what this JVM and machine give: kernels and why others cannot be had, CPU, memory.",
    sortOptions = false)
final class DoctorCommand implements Callable<Integer> {
  private static final Path CPU_INFO = Path.of("/proc/cpuinfo");

  /** CPU features that kernels ask for. */
  private static final Set<String> FEATURES =
      Set.of("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "avx512_bf16",
          "amx_tile", "amx_int8", "amx_bf16");

  @Spec private CommandSpec spec;

  @Option(names = "--json", description = "print one JSON object instead of the text")
  private boolean json;

  @Override
  public Integer call() {
    ObjectNode report = report();
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      out.println(Json.text(report));
    } else {
      print(report, out);
    }
    out.flush();
    return 0;
  }

  private static ObjectNode report() {
    ObjectNode report = Json.object();
    report.put("version", Version.current());
    report
        .putObject("jdk")
        .put("version", Runtime.version().toString())
        .put("vendor", System.getProperty("java.vm.vendor"))
        .put("home", System.getProperty("java.home"))
        .put("mode", System.getProperty("java.vm.info"))
        .put("vector_module", ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent());
    CpuBudget budget = CpuBudget.read();
    ObjectNode cpu = report.putObject("cpu");
    cpu.put("model", cpuLine("model name"));
    cpu.put("processors", budget.processors());
    cpu.put("default_threads", budget.threads());
    ArrayNode features = cpu.putArray("features");
    Set<String> present = new TreeSet<>(List.of(cpuLine("flags").split(" ")));
    present.retainAll(FEATURES);
    present.forEach(features::add);
    OperatingSystemMXBean system = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    report
        .putObject("memory")
        .put("total_bytes", system.getTotalMemorySize())
        .put("free_bytes", system.getFreeMemorySize())
        .put("heap_limit_bytes", Runtime.getRuntime().maxMemory());
    String word = kernelsWord();
    String chosen = "";
    ArrayNode kernels = report.putArray("kernels");
    for (KernelSelection.Candidate candidate : KernelSelection.survey()) {
      kernels
          .addObject()
          .put("id", candidate.id())
          .put("ready", candidate.ready())
          .put("detail", candidate.detail())
          .put("caution", candidate.caution());
      if (candidate.ready() && chosen.isEmpty() && (word.equals("auto") || word.equals(candidate.id()))) {
        chosen = candidate.detail();
      }
    }
    report.put("kernels_option", word);
    report.put("chosen", chosen);
    report
        .putObject("settings")
        .put("TACHO_KERNELS", System.getenv().getOrDefault("TACHO_KERNELS", ""))
        .put("TACHO_MAX_ISA", System.getenv().getOrDefault("TACHO_MAX_ISA", ""))
        .put("tacho.kernels", System.getProperty("tacho.kernels", ""))
        .put("tacho.native.path", System.getProperty("tacho.native.path", ""))
        .put("tacho.native.workdir", System.getProperty("tacho.native.workdir", System.getProperty("java.io.tmpdir")));
    return report;
  }

  /** What would be asked for: the environment's word, else the system property's. */
  private static String kernelsWord() {
    EngineOption option = EngineOption.KERNELS;
    String word = System.getenv().getOrDefault(option.environmentName(), option.defaultText());
    return word.equals(option.defaultText()) ? KernelSelection.configured() : word;
  }

  /** The value of a line of /proc/cpuinfo, empty where there is none. */
  private static String cpuLine(String key) {
    try {
      for (String line : Files.readAllLines(CPU_INFO)) {
        int colon = line.indexOf(':');
        if (colon > 0 && line.substring(0, colon).strip().equals(key)) {
          return line.substring(colon + 1).strip();
        }
      }
    } catch (IOException e) {
      return "";
    }
    return "";
  }

  private static void print(ObjectNode report, PrintWriter out) {
    out.println("tacho    " + report.get("version").asText());
    out.printf(
        "JDK      %s, %s (%s), %s%n",
        report.at("/jdk/version").asText(),
        report.at("/jdk/vendor").asText(),
        report.at("/jdk/mode").asText(),
        report.at("/jdk/home").asText());
    out.printf(
        "CPU      %s, %d processors, %d worker threads by default%n",
        report.at("/cpu/model").asText(),
        report.at("/cpu/processors").asInt(),
        report.at("/cpu/default_threads").asInt());
    StringBuilder features = new StringBuilder();
    report.at("/cpu/features").forEach(feature -> features.append(' ').append(feature.asText()));
    out.println("        " + features);
    out.printf(
        "memory   %s, %s free; Java heap up to %s%n",
        new MemorySize(report.at("/memory/total_bytes").asLong()).human(),
        new MemorySize(report.at("/memory/free_bytes").asLong()).human(),
        new MemorySize(report.at("/memory/heap_limit_bytes").asLong()).human());
    String chosen = report.get("chosen").asText();
    out.println(
        "kernels  --kernels " + report.get("kernels_option").asText() + " takes: "
            + (chosen.isEmpty() ? "none, and fails" : chosen));
    report
        .get("kernels")
        .forEach(
            kernel -> {
              out.printf(
                  "  %-7s %s: %s%n",
                  kernel.get("id").asText(),
                  kernel.get("ready").asBoolean() ? "ready" : "missing",
                  kernel.get("detail").asText());
              if (!kernel.get("caution").asText().isEmpty()) {
                out.println("          slow here: " + kernel.get("caution").asText());
              }
            });
    out.println("settings");
    report
        .get("settings")
        .properties()
        .forEach(
            setting ->
                out.printf(
                    "  %s = %s%n",
                    setting.getKey(),
                    setting.getValue().asText().isEmpty() ? "(not set)" : setting.getValue().asText()));
  }
}
