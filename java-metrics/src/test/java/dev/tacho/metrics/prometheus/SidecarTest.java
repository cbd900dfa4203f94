package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.EngineMetricsSource;
import dev.tacho.metrics.FakeEngine;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventReader;
import dev.tacho.metrics.event.EventType;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.page.ProcessFile;
import dev.tacho.metrics.ring.FlightRecorder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What another process sees of engines that publish in a directory. */
@Timeout(60)
class SidecarTest {
  @TempDir
  private Path directory;

  private FakeEngine engine(int index, Consumer<EngineMetricsOptions.Builder> more) {
    return new FakeEngine(index, MetricsRegistry.create(MetricsCollector.onDemand()), options -> {
      options.directory(directory);
      more.accept(options);
    });
  }

  private String text() throws IOException {
    return text(new PageDirectory(directory));
  }

  private static String text(PageDirectory pages) throws IOException {
    return new String(pages.exposition(ExpositionFormat.TEXT_0_0_4), StandardCharsets.UTF_8);
  }

  private static List<String> settled(String text) {
    return text.lines().filter(line -> !line.startsWith("tacho:metrics_drain_seconds")
        && !line.contains("tacho:sidecar_")
        && !line.startsWith("tacho:seconds_since") && !line.startsWith("tacho:oldest")).toList();
  }

  private static void serve(FakeEngine engine, int slot, long millis) {
    engine.queue(slot, 0, 5);
    engine.schedule(0, slot);
    engine.firstOutput(slot, millis, 5);
    engine.lastOutput(slot, millis + 10, 1, FinishReason.LENGTH);
  }

  @Test
  void onePageIsTheTextOfItsProcess() throws Exception {
    try (FakeEngine engine = engine(0, options -> options.speculativeTokens(2).maxAdapters(3)
        .kvCacheMetrics(true).cacheConfig(Map.of("block_size", "16", "odd", "a\\b\n\"=c"))
        .customHistogramBuckets(Map.of("request_latency", List.of(0.01, 0.5))))) {
      serve(engine, 0, 30);
      engine.events().queued(1, 0, 0, 0, 1, 0, 0, 1, engine.events().name("poet"));
      engine.snapshot(1, 0, 0, 3, 10);
      String own = engine.source().exposition(ExpositionFormat.TEXT_0_0_4);
      assertThat(own).contains("running_lora_adapters=\"poet\"").contains("odd=\"a\\\\b\\n\\\"=c\"");
      assertThat(settled(text())).containsExactlyElementsOf(settled(own));
    }
    assertThat(directory).as("a closed engine leaves nothing").isEmptyDirectory();
  }

  @Test
  void enginesWithLabelsOfTheirOwnStandSideBySide() throws Exception {
    try (FakeEngine first = engine(0, options -> { }); FakeEngine second = engine(1, options -> { })) {
      first.snapshot(1, 0, 0, 1, 1);
      second.snapshot(2, 0, 0, 1, 1);
      first.source().registry().collector().drain();
      second.source().registry().collector().drain();
      assertThat(text().lines().filter(line -> line.startsWith("vllm:num_requests_running{"))).containsExactly(
          "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 1.0",
          "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 2.0");
    }
  }

  @Test
  void processesWithTheSameLabelsAddUpAndTheLatestGaugeCounts() throws Exception {
    try (FakeEngine first = engine(0, options -> { }); FakeEngine second = engine(0, options -> { })) {
      serve(first, 0, 30);
      serve(second, 0, 700);
      serve(second, 1, 700);
      first.snapshot(7, 0, 0, 1, 1);
      first.source().registry().collector().drain();
      long firstUpdate = System.currentTimeMillis();
      Await.until("the clock has moved", () -> System.currentTimeMillis() != firstUpdate);
      second.snapshot(3, 0, 0, 1, 1);
      second.source().registry().collector().drain();
      assertThat(text())
          .contains("vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n")
          .contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 6.0\n")
          .contains("tacho:requests_accepted_total{engine=\"0\",model_name=\"m\"} 3.0\n")
          .contains("vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.04\",model_name=\"m\"} 1.0\n")
          .contains("vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.75\",model_name=\"m\"} 3.0\n")
          .contains("vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"m\"} 3.0\n")
          .contains("vllm:time_to_first_token_seconds_sum{engine=\"0\",model_name=\"m\"} 1.43\n")
          .containsOnlyOnce("# TYPE vllm:num_requests_running gauge\n");
    }
  }

  /** A process that has published and goes on living. */
  private Process publisher() throws Exception {
    Process child = new ProcessBuilder(
        ProcessHandle.current().info().command().orElseThrow(), "-cp", System.getProperty("java.class.path"),
        Publisher.class.getName(), directory.toString()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    try {
      assertThat(child.inputReader().readLine()).isEqualTo("published");
      return child;
    } catch (IOException | AssertionError e) {
      child.destroyForcibly();
      throw e;
    }
  }

  private static void kill(Process child) throws InterruptedException {
    assertThat(child.destroyForcibly().waitFor()).as("killed").isEqualTo(128 + 9);
  }

  /** Types of the events in the rings that a process has left. */
  private List<EventType> leftBy(Process child) throws IOException {
    List<EventType> types = new ArrayList<>();
    for (Path path : files()) {
      if (path.getFileName().toString().startsWith("tacho-" + child.pid() + "-")) {
        EventReader reader = new EventReader();
        FlightRecorder.open(path).read((memory, offset) -> {
          types.add(reader.wrap(memory, offset).type());
          return reader.bytes();
        });
      }
    }
    return types;
  }

  private static String sidecarLines(String text) {
    return text.lines().filter(line -> line.startsWith("tacho:sidecar_")).collect(Collectors.joining("\n"));
  }

  @Test
  void aProcessIsServedWhileItLivesAndGoneWhenItIsKilledButForItsRings() throws Exception {
    Process child = publisher();
    try (FakeEngine own = engine(1, options -> { });
        Sidecar sidecar = Sidecar.start(directory, "127.0.0.1", 0); HttpClient client = HttpClient.newHttpClient()) {
      own.snapshot(2, 0, 0, 1, 1);
      own.source().registry().collector().drain();
      HttpResponse<String> both = get(client, sidecar, "/metrics", "application/openmetrics-text;version=1.0.0");
      assertThat(both.headers().firstValue("Content-Type")).hasValueSatisfying(type ->
          assertThat(type).startsWith("application/openmetrics-text; version=1.0.0"));
      assertThat(both.body()).endsWith("# EOF\n")
          .contains("vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5.0\n")
          .contains("vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 2.0\n")
          .contains("tacho:sidecar_processes 2.0\n");
      assertThat(get(client, sidecar, "/", "").statusCode()).isEqualTo(404);
      kill(child);
      List<Path> left = files();
      String died = """
          tacho:sidecar_processes 1.0
          tacho:sidecar_processes_gone_total{end="closed"} 0.0
          tacho:sidecar_processes_gone_total{end="died"} 1.0""";
      for (int scrape = 0; scrape < 2; scrape++) {
        String alone = get(client, sidecar, "/metrics", "").body();
        assertThat(alone).doesNotContain("engine=\"0\"").contains("engine=\"1\"");
        assertThat(sidecarLines(alone)).isEqualTo(died);
        assertThat(files()).as("the page of the dead process is deleted").hasSize(left.size() - 1);
      }
      assertThat(leftBy(child)).contains(EventType.SNAPSHOT);
    } finally {
      kill(child);
    }
  }

  @Test
  void ringsStayUntilAnotherProcessOfTheEngineDiesEvenIfNobodySawItLive() throws Exception {
    PageDirectory pages = new PageDirectory(directory);
    Process first = publisher();
    kill(first);
    String text = text(pages);
    assertThat(sidecarLines(text)).startsWith("tacho:sidecar_processes 0.0\n").endsWith("{end=\"died\"} 1.0");
    // It starts after the death of the first, so its own is the later one.
    Process second = publisher();
    try {
      text = text(pages);
      assertThat(sidecarLines(text)).startsWith("tacho:sidecar_processes 1.0\n").endsWith("{end=\"died\"} 1.0");
      assertThat(leftBy(first)).as("of the first, while the second lives").contains(EventType.SNAPSHOT);
      engine(1, options -> { }).close();
      text = text(pages);
      assertThat(sidecarLines(text)).as("closed before it was seen").contains("{end=\"closed\"} 0.0");
    } finally {
      kill(second);
    }
    // The next engine that starts here takes the page away before the sidecar looks.
    try (FakeEngine next = engine(0, options -> { })) {
      text = text(pages);
      assertThat(sidecarLines(text)).startsWith("tacho:sidecar_processes 1.0\n").endsWith("{end=\"died\"} 2.0");
      assertThat(leftBy(second)).contains(EventType.SNAPSHOT);
      assertThat(leftBy(first)).as("of the first, now that the second has died").isEmpty();
      next.snapshot(0, 0, 0, 1, 1);
    }
    text = text(pages);
    assertThat(sidecarLines(text)).isEqualTo("""
        tacho:sidecar_processes 0.0
        tacho:sidecar_processes_gone_total{end="closed"} 1.0
        tacho:sidecar_processes_gone_total{end="died"} 2.0""");
  }

  /** Of a process that dies and is started again between two scrapes the next one takes the files away. */
  @Test
  void deathsInACrashLoopAreNoCloses() throws Exception {
    PageDirectory pages = new PageDirectory(directory);
    for (int restart = 0; restart < 3; restart++) {
      Process child = publisher();
      try {
        assertThat(sidecarLines(text(pages))).startsWith("tacho:sidecar_processes 1.0\n");
      } finally {
        kill(child);
      }
      try (FakeEngine next = engine(0, options -> { })) {
        next.snapshot(0, 0, 0, 1, 1);
      }
    }
    assertThat(sidecarLines(text(pages))).isEqualTo("""
        tacho:sidecar_processes 0.0
        tacho:sidecar_processes_gone_total{end="closed"} 0.0
        tacho:sidecar_processes_gone_total{end="died"} 3.0""");
  }

  @Test
  void aProcessThatStandsStillAndCannotBeSeenIsLeftOutButHasNotDied() throws Exception {
    PageDirectory pages = new PageDirectory(directory);
    try (FakeEngine engine = engine(0, options -> { })) {
      engine.snapshot(0, 0, 0, 1, 1);
      engine.source().registry().collector().drain();
      Path page = files().stream().filter(path -> path.toString().endsWith(".page")).findFirst().orElseThrow();
      write(page, 32, 1);
      for (int pause = 0; pause < 2; pause++) {
        write(page, 56, System.currentTimeMillis());
        assertThat(sidecarLines(text(pages))).startsWith("tacho:sidecar_processes 1.0\n");
        write(page, 56, System.currentTimeMillis() - 2 * ProcessFile.FRESH_MILLIS);
        assertThat(sidecarLines(text(pages))).isEqualTo("""
            tacho:sidecar_processes 0.0
            tacho:sidecar_processes_gone_total{end="closed"} 0.0
            tacho:sidecar_processes_gone_total{end="died"} 0.0""");
      }
    }
    assertThat(sidecarLines(text(pages))).contains("{end=\"closed\"} 1.0");
  }

  private static void write(Path file, long at, long value) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(0, value), at);
    }
  }

  @Test
  void aFolderWithTheNameOfAFileStaysAndHoldsUpNobody() throws Exception {
    Path folder = Files.createDirectories(directory.resolve("tacho-1-1-1.page.tmp"));
    Path inside = Files.createFile(folder.resolve("inside"));
    Path empty = Files.createDirectories(directory.resolve("tacho-2-1-1.ring.tmp"));
    for (Path path : List.of(folder, empty)) {
      Files.setLastModifiedTime(path, FileTime.fromMillis(1));
    }
    try (FakeEngine engine = engine(0, options -> { })) {
      engine.snapshot(0, 0, 0, 1, 1);
      assertThat(sidecarLines(text())).startsWith("tacho:sidecar_processes 1.0\n");
    }
    assertThat(inside).exists();
    assertThat(empty).exists();
  }

  @ParameterizedTest
  @CsvSource({
      "2, there is no such directory, none", "2, is no directory, file", "1, --port %d: Address already in use, ."})
  void theCommandSaysWhatWasWrong(int exit, String why, String where) throws Exception {
    Files.writeString(directory.resolve("file"), "x");
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Process command = new ProcessBuilder(ProcessHandle.current().info().command().orElseThrow(), "-cp",
          System.getProperty("java.class.path"), Sidecar.class.getName(), "--port", "" + taken.getLocalPort(),
          directory.resolve(where).toString()).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
      try (BufferedReader errors = command.errorReader()) {
        assertThat(errors.readAllAsString()).contains(why.formatted(taken.getLocalPort()));
      }
      assertThat(command.waitFor()).isEqualTo(exit);
    }
  }

  /** The last events of a process that was killed can still be read. */
  @Test
  void theFlightRecorderReadsTheRingsOfAnEngine() throws Exception {
    try (FakeEngine engine = engine(0, options -> { })) {
      serve(engine, 3, 30);
      engine.source().registry().collector().drain();
      List<EventType> types = new ArrayList<>();
      for (Path path : files()) {
        if (path.toString().endsWith(".ring")) {
          FlightRecorder recorder = FlightRecorder.open(path);
          EventReader reader = new EventReader();
          assertThat(recorder.file().names()).startsWith("model_name=m\nengine=0\nring=");
          recorder.read((memory, offset) -> {
            types.add(reader.wrap(memory, offset).type());
            return reader.bytes();
          });
        }
      }
      assertThat(types).containsExactlyInAnyOrder(EventType.QUEUED, EventType.SCHEDULED, EventType.STEP,
          EventType.PREFILL_STATS, EventType.TOKENS, EventType.PICK_UP, EventType.STEP, EventType.TOKENS,
          EventType.FINISHED, EventType.PICK_UP);
    }
  }

  @Test
  void whatCannotBeReadIsLeftOut() throws Exception {
    Files.writeString(directory.resolve("tacho-1-2-3.page"), "no page");
    String nobody = """
        # HELP tacho:sidecar_processes Processes whose pages the sidecar read for this answer.
        # TYPE tacho:sidecar_processes gauge
        tacho:sidecar_processes 0.0
        # HELP tacho:sidecar_processes_gone_total Processes whose pages the sidecar reads no more: they closed their \
        engines, or died.
        # TYPE tacho:sidecar_processes_gone_total counter
        tacho:sidecar_processes_gone_total{end="closed"} 0.0
        tacho:sidecar_processes_gone_total{end="died"} 0.0
        """;
    assertThat(text()).isEqualTo(nobody);
    assertThat(new PageDirectory(directory.resolve("none")).exposition(ExpositionFormat.TEXT_0_0_4))
        .asString(StandardCharsets.UTF_8).isEqualTo(nobody);
    assertThatThrownBy(() -> FamiliesText.read("catalog=0\nmodel_name=m\n")).hasMessageContaining("other families");
  }

  @Test
  void aDirectoryThatCannotBeMadeIsNamedAndTheEngineDoesNotJoin() throws IOException {
    Path file = Files.writeString(directory.resolve("file"), "x");
    MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
    assertThatThrownBy(() -> new FakeEngine(0, registry, options -> options.directory(file.resolve("below"))))
        .isInstanceOf(UncheckedIOException.class).hasMessageContaining(file.toString());
    new FakeEngine(0, registry, options -> { }).close();
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> found = Files.list(directory)) {
      return found.toList();
    }
  }

  private static HttpResponse<String> get(HttpClient client, Sidecar sidecar, String path, String accept)
      throws Exception {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + sidecar.port() + path)).timeout(Duration.ofSeconds(30));
    if (!accept.isEmpty()) {
      request.header("Accept", accept);
    }
    return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  /** The child: publishes once and waits to be killed. */
  static final class Publisher {
    private Publisher() {}

    public static void main(String[] args) throws Exception {
      EngineMetricsOptions options =
          EngineMetricsOptions.builder(FakeEngine.MODEL, 4096).directory(Path.of(args[0])).build();
      EngineMetricsSource source = EngineMetricsSource.open(options);
      source.engineWriter().snapshot(5, 0, 0, 1, 1, 0, 0, 0);
      source.engineWriter().commit();
      source.exposition(ExpositionFormat.TEXT_0_0_4);
      System.out.println("published");
      // A parent that is gone does not kill.
      Thread.sleep(Duration.ofSeconds(60));
    }
  }

  @Test
  void aPageOfEveryKindOfFamilyIsLaidOutTheSameInAnotherProcess() {
    EngineFamilies.Builder all = EngineFamilies.builder("m\\ \n", 3, 4096).workers(2).speculativeTokens(4)
        .maxAdapters(2)
        .cacheConfig(Map.of("block_size", "16"))
        .offload(OffloadDescription.toHost(4, 2, 1024, 64, 2, List.of("disk,fast", "s3")));
    for (MetricFamily.Gate gate : MetricFamily.Gate.values()) {
      all.with(gate, true);
    }
    PageLayout written = new PageLayout(all.build());
    PageLayout read = new PageLayout(FamiliesText.read(FamiliesText.write(all.build())));
    assertThat(read.cells()).isEqualTo(written.cells());
    for (MetricFamily family : MetricCatalog.families()) {
      assertThat(read.has(family)).as(family.name()).isEqualTo(written.has(family));
      for (int child = 0; written.has(family) && child < written.children(family); child++) {
        assertThat(read.cell(family, child)).as(family.name()).isEqualTo(written.cell(family, child));
        assertThat(read.labels(family, child)).as(family.name()).isEqualTo(written.labels(family, child));
      }
    }
  }
}
