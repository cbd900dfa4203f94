package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.FileReaper;
import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.page.ProcessFile;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The metrics of every process that publishes in a directory, read from its pages, and how many these processes are;
 * pages of dead ones are left out and deleted, see {@link FileReaper}. Any thread, one at a time.
 *
 * <p>Engines with labels of their own stand side by side. Where processes share model name and engine index, counters
 * and histograms are sums over them, gauges are those of the process that wrote last, and {@code
 * vllm:lora_requests_info} is a sum over those with the same adapters.
 */
public final class PageDirectory {
  private static final Logger LOG = LoggerFactory.getLogger(PageDirectory.class);
  private static final int ATTEMPTS = 200;
  private static final long PAUSE_NANOS = 50_000;

  private final Path directory;
  private final Map<Path, Page> pages = new HashMap<>();
  private final Set<Path> refused = new HashSet<>();
  private final SidecarMetrics own = new SidecarMetrics();
  private final ExpositionWriter writer = new ExpositionWriter(new TextBuffer());

  /** The directory's; it may come into being later. */
  public PageDirectory(Path directory) {
    this.directory = directory;
  }

  /**
   * The text of all metrics.
   *
   * @throws IOException if the directory cannot be read
   */
  public synchronized byte[] exposition(ExpositionFormat format) throws IOException {
    look();
    List<Page> read = pages.values().stream().filter(page -> !page.gone && page.read())
        .sorted(Comparator.comparing((Page page) -> page.layout.modelName())
            .thenComparingInt(page -> page.layout.engineIndex()))
        .toList();
    Map<List<Object>, List<Page>> engines = new LinkedHashMap<>();
    for (Page page : read) {
      engines.computeIfAbsent(List.of(page.layout.modelName(), page.layout.engineIndex()), key -> new ArrayList<>())
          .add(page);
    }
    own.reads((int) read.stream().map(page -> page.file.process()).distinct().count());
    List<EngineText> texts = engines.values().stream().map(PageDirectory::merge).toList();
    return writer.write(texts, Collections.enumeration(own.collect()), format).toByteArray();
  }

  /** Processes' pages that were there the last time. */
  synchronized Collection<Path> files() {
    return List.copyOf(pages.keySet());
  }

  private void look() throws IOException {
    Set<Path> found = new HashSet<>();
    if (Files.isDirectory(directory)) {
      try (DirectoryStream<Path> paths = Files.newDirectoryStream(directory, "tacho-*.page")) {
        for (Path path : paths) {
          found.add(path);
          open(path);
        }
      }
    }
    List<List<Page>> left = whoIsGone(found);
    if (Files.isDirectory(directory)) {
      FileReaper.reap(directory);
    }
    for (List<Page> process : left) {
      tellOf(process);
    }
    pages.keySet().retainAll(found);
    refused.retainAll(found);
  }

  /** Marks the pages that are not to be read, and gives those of processes that have ended since the last time. */
  private List<List<Page>> whoIsGone(Set<Path> found) {
    Map<String, List<Page>> left = new LinkedHashMap<>();
    Set<String> here = new HashSet<>();
    for (Page page : pages.values()) {
      boolean isThere = found.contains(page.file.path());
      boolean hadEnded = page.ended;
      page.gone = !isThere || page.file.isStale();
      // One that stands still and cannot be seen from here may come back.
      page.ended = !isThere || (page.gone && page.file.isOfThisNamespace());
      if (!page.ended) {
        here.add(page.file.process());
      } else if (!hadEnded) {
        left.computeIfAbsent(page.file.process(), key -> new ArrayList<>()).add(page);
      }
    }
    left.keySet().removeAll(here);
    return List.copyOf(left.values());
  }

  /** Counts a process that has ended and says so. */
  private void tellOf(List<Page> process) throws IOException {
    ProcessFile file = process.getFirst().file;
    String engines = process.stream().map(page -> page.layout.modelName() + " " + page.layout.engineIndex()).sorted()
        .collect(Collectors.joining(", "));
    if (process.stream().allMatch(page -> page.file.isTakenAway())) {
      own.closed();
      LOG.info("process {} has closed its engines and taken their files away: {}", file.pid(), engines);
    } else if (file.isOfThisNamespace() && !file.isStale()) {
      LOG.warn("somebody has taken the files of process {} away (engines: {}); it lives, and is left out", file.pid(),
          engines);
    } else {
      List<Path> rings = ringsOf(file);
      own.died();
      LOG.warn("process {} has died (engines: {}): its pages are left out; {}", file.pid(), engines,
          rings.isEmpty() ? "it left no rings" : "FlightRecorder can read its rings until another process of the same"
              + " engine dies: " + rings);
    }
  }

  /** The rings that a dead process left. */
  private List<Path> ringsOf(ProcessFile page) throws IOException {
    List<Path> rings = new ArrayList<>();
    if (Files.isDirectory(directory) && page.isStale()) {
      String pattern = "tacho-" + page.process() + "-*" + ProcessFile.Kind.RING.suffix();
      try (DirectoryStream<Path> paths = Files.newDirectoryStream(directory, pattern)) {
        paths.forEach(rings::add);
      }
    }
    return rings;
  }

  private void open(Path path) {
    if (pages.containsKey(path) || refused.contains(path)) {
      return;
    }
    try {
      pages.put(path, new Page(ProcessFile.open(path, ProcessFile.Kind.PAGE)));
    } catch (IOException | IllegalArgumentException e) {
      if (Files.exists(path)) {
        refused.add(path);
        LOG.warn("{} is left out: {}", path, e.getMessage());
      }
    }
  }

  private static EngineText merge(List<Page> sameEngine) {
    Page latest = Collections.max(sameEngine, Comparator.comparingLong(page -> page.text.values().updatedMillis()));
    if (sameEngine.size() == 1) {
      return latest.text;
    }
    EngineText merged = new EngineText(latest.layout);
    merged.adapters(latest.adapters);
    for (Page page : sameEngine) {
      if (page.file.names().equals(latest.file.names())) {
        for (MetricFamily family : MetricCatalog.families()) {
          if (latest.layout.has(family)) {
            add(merged.values(), page, family, latest);
          }
        }
      } else {
        LOG.debug("{} is left out beside {}: its families differ", page.file, latest.file);
      }
    }
    return merged;
  }

  private static void add(MetricsPage to, Page page, MetricFamily family, Page latest) {
    PageLayout layout = latest.layout;
    MetricsPage from = page.text.values();
    for (int child = 0; child < layout.children(family); child++) {
      int cell = layout.cell(family, child);
      switch (family.type()) {
        case COUNTER -> to.add(cell, from.get(cell));
        case HISTOGRAM -> {
          int buckets = layout.bounds(family).length + 1;
          for (int i = 0; i < buckets; i++) {
            to.increment(cell + i, from.count(cell + i));
          }
          to.add(cell + buckets, from.get(cell + buckets));
        }
        case GAUGE -> {
          if (family.gate() == MetricFamily.Gate.LORA) {
            to.add(cell, Objects.equals(page.adapters, latest.adapters) ? from.get(cell) : 0);
          } else if (page == latest) {
            to.set(cell, from.get(cell));
          }
        }
      }
      if (family.onFirstUse()) {
        to.increment(layout.reports(family, child), from.count(layout.reports(family, child)));
      }
    }
  }

  /** A process's page and the values last read from it. */
  private static final class Page {
    final ProcessFile file;
    final PageLayout layout;
    final EngineText text;
    private final MetricsPage shared;
    private final MemorySegment sharedAdapters;
    @Nullable String adapters;
    boolean gone;
    boolean ended;

    Page(ProcessFile file) throws IOException {
      this.file = file;
      layout = new PageLayout(FamiliesText.read(file.names()));
      MemorySegment data = file.data();
      if (data.byteSize() < PageFile.bytes(layout)) {
        throw new IOException(file + " is damaged: " + data.byteSize() + " bytes of data");
      }
      shared = MetricsPage.ofOther(data.asSlice(0, PageFile.pageBytes(layout)), layout.cells());
      sharedAdapters = PageFile.adaptersOf(data, layout);
      text = new EngineText(layout);
    }

    /** Takes the values of one moment; false if the process was killed while it changed them. */
    boolean read() {
      for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (shared.tryCopyTo(text.values(), () -> adapters = PageFile.readAdapters(sharedAdapters))) {
          text.adapters(adapters);
          return true;
        }
        LockSupport.parkNanos(PAUSE_NANOS);
      }
      LOG.warn("{} is left out: its process stopped while it changed values", file);
      return false;
    }
  }
}
