package dev.tacho.bench;

import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.EngineMetricsSource;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricCatalog;
import dev.tacho.metrics.prometheus.MetricFamily;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import io.prometheus.client.CollectorRegistry;
import io.prometheus.client.Counter;
import io.prometheus.client.Gauge;
import io.prometheus.client.Histogram;
import io.prometheus.client.exporter.common.TextFormat;
import io.prometheus.metrics.config.EscapingScheme;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.DoubleConsumer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * A scrape of 64 engines with every family that each publishes, about 4 MB: ours, and the same families with the same
 * values as simpleclient and client_java 1.x keep and write them. Compare {@code gc.alloc.rate.norm} of {@code -prof
 * gc} for the garbage.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(value = 2, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
public class ScrapeBenchmark {
  private static final int ENGINES = 64;
  private static final int REQUESTS = 50;

  private final MetricsCollector collector = MetricsCollector.onDemand();
  private final MetricsRegistry registry = MetricsRegistry.create(collector);
  private final CollectorRegistry simpleclient = new CollectorRegistry();
  private final PrometheusRegistry clientJava = new PrometheusRegistry();
  private final List<MetricsPage> pages = new ArrayList<>();
  private final List<MetricsPage> copies = new ArrayList<>();
  private final CountingStream out = new CountingStream();

  /** Runs some requests on each engine and copies what is published into the other registries. */
  @Setup
  public void fill() throws IOException {
    Random random = new Random(5);
    for (int engine = 0; engine < ENGINES; engine++) {
      EngineMetricsSource source = EngineMetricsSource.open(EngineMetricsOptions
          .builder("meta-llama/Llama-3.1-8B-Instruct", 131072).engineIndex(engine).registry(registry)
          .logInterval(Duration.ZERO).discoverPlugIns(false).speculativeTokens(5).kvCacheMetrics(true).workers(8)
          .build());
      for (int i = 0; i < REQUESTS; i++) {
        request(source, i, random);
      }
    }
    Map<String, MetricFamily> catalog = new HashMap<>();
    MetricCatalog.families().forEach(family -> catalog.put(family.baseName(), family));
    Map<String, List<MetricsSnapshot.Value>> byName = new HashMap<>();
    for (MetricsSnapshot.Value value : registry.snapshot().values()) {
      byName.computeIfAbsent(value.name(), name -> new ArrayList<>()).add(value);
    }
    byName.forEach((name, values) -> {
      MetricFamily family = catalog.get(name);
      copyToSimpleclient(name, family == null ? "" : family.help(), values);
      copyToClientJava(name, family == null ? "" : family.help(), values);
    });
    long samples = registry.exposition(ExpositionFormat.TEXT_0_0_4).lines().filter(l -> !l.startsWith("#")).count();
    for (int i = 0; i < ENGINES; i++) {
      pages.add(new MetricsPage((int) samples / ENGINES));
      copies.add(new MetricsPage((int) samples / ENGINES));
    }
    ours();
    System.out.println("bytes of a scrape: " + out.bytes);
  }

  private static void request(EngineMetricsSource source, int slot, Random random) {
    long now = slot * 1_000_000_000L;
    EventWriter events = source.engineWriter();
    events.queued(slot, 0, now + 1000, now, 100 + random.nextInt(1000), 200, 0, 1, 0);
    events.scheduled(slot, 0, now + random.nextInt(100_000_000));
    for (int token = 1; token <= 20; token++) {
      long batch = now + 100_000_000 + token * (10_000_000L + random.nextInt(1_000_000));
      events.step(slot * 100L + token, batch, batch, 1, new StepShape());
      if (token == 1) {
        events.prefillStats(slot, 0, 100, 16, 0, 0);
      }
      events.tokens(slot, 0, 1);
      if (token == 20) {
        events.finished(slot, 0, FinishReason.STOP);
      }
      events.snapshot(random.nextInt(64), random.nextInt(8), 0, random.nextInt(1000), 1000, 1, 100, 16);
      events.commit();
      source.outputWriter().pickUp(slot * 100L + token, batch + random.nextInt(1_000_000));
      source.outputWriter().commit();
    }
  }

  private void copyToSimpleclient(String name, String help, List<MetricsSnapshot.Value> values) {
    String[] names = values.get(0).labels().keySet().toArray(new String[0]);
    switch (values.get(0)) {
      case MetricsSnapshot.Gauge first -> {
        Gauge gauge = Gauge.build(name, help).labelNames(names).register(simpleclient);
        values.forEach(v -> gauge.labels(texts(v)).set(((MetricsSnapshot.Gauge) v).value()));
      }
      case MetricsSnapshot.Counter first -> {
        Counter counter = Counter.build(name, help).labelNames(names).withoutExemplars().register(simpleclient);
        values.forEach(v -> counter.labels(texts(v)).inc(((MetricsSnapshot.Counter) v).value()));
      }
      case MetricsSnapshot.Histogram first -> {
        Histogram histogram = Histogram.build(name, help).labelNames(names).withoutExemplars()
            .buckets(first.bounds().stream().mapToDouble(Double::doubleValue).toArray()).register(simpleclient);
        values.forEach(v -> observe((MetricsSnapshot.Histogram) v, histogram.labels(texts(v))::observe));
      }
    }
  }

  private void copyToClientJava(String name, String help, List<MetricsSnapshot.Value> values) {
    String[] names = values.get(0).labels().keySet().toArray(new String[0]);
    switch (values.get(0)) {
      case MetricsSnapshot.Gauge first -> {
        var gauge = io.prometheus.metrics.core.metrics.Gauge.builder().name(name).help(help).labelNames(names)
            .register(clientJava);
        values.forEach(v -> gauge.labelValues(texts(v)).set(((MetricsSnapshot.Gauge) v).value()));
      }
      case MetricsSnapshot.Counter first -> {
        var counter = io.prometheus.metrics.core.metrics.Counter.builder().name(name).help(help).labelNames(names)
            .withoutExemplars().register(clientJava);
        values.forEach(v -> counter.labelValues(texts(v)).inc(((MetricsSnapshot.Counter) v).value()));
      }
      case MetricsSnapshot.Histogram first -> {
        var histogram = io.prometheus.metrics.core.metrics.Histogram.builder().name(name).help(help).labelNames(names)
            .withoutExemplars().classicOnly()
            .classicUpperBounds(first.bounds().stream().mapToDouble(Double::doubleValue).toArray())
            .register(clientJava);
        values.forEach(v -> observe((MetricsSnapshot.Histogram) v, histogram.labelValues(texts(v))::observe));
      }
    }
  }

  private static void observe(MetricsSnapshot.Histogram from, DoubleConsumer to) {
    for (int bucket = 0; bucket < from.counts().size(); bucket++) {
      double value = bucket < from.bounds().size() ? from.bounds().get(bucket) * 0.999 : 1e9;
      for (long i = from.counts().get(bucket); i > 0; i--) {
        to.accept(value);
      }
    }
  }

  private static String[] texts(MetricsSnapshot.Value value) {
    return value.labels().values().toArray(new String[0]);
  }

  /** Ours: drain, copy, render, write. */
  @Benchmark
  public long ours() throws IOException {
    registry.writeTo(ExpositionFormat.TEXT_0_0_4, out);
    return out.bytes;
  }

  /** simpleclient's text format into a buffered writer. */
  @Benchmark
  public long simpleclientWrite004() throws IOException {
    Writer writer = new BufferedWriter(new OutputStreamWriter(out, StandardCharsets.UTF_8));
    TextFormat.write004(writer, simpleclient.metricFamilySamples());
    writer.flush();
    return out.bytes;
  }

  /** client_java 1.x's text format. */
  @Benchmark
  public long clientJavaText() throws IOException {
    PrometheusTextFormatWriter.create().write(out, clientJava.scrape(), EscapingScheme.ALLOW_UTF8);
    return out.bytes;
  }

  /** What a scrape does under the collector's lock before it copies, when there is nothing to drain. */
  @Benchmark
  public void drainOfNothing() {
    collector.drain();
  }

  /** What a scrape does under the collector's lock after that: the copy of all pages. */
  @Benchmark
  public long copyOfAllPages() {
    for (int i = 0; i < ENGINES; i++) {
      pages.get(i).copyTo(copies.get(i));
    }
    return copies.get(0).count(0);
  }

  /** Counts what it drops. */
  private static final class CountingStream extends OutputStream {
    long bytes;

    @Override
    public void write(int b) {
      bytes++;
    }

    @Override
    public void write(byte[] text, int offset, int length) {
      bytes = length;
    }
  }
}
