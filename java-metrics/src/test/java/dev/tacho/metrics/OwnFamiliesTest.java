package dev.tacho.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.perf.DeviceCounters;
import dev.tacho.metrics.perf.DevicePeaks;
import dev.tacho.metrics.perf.DeviceRates;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import dev.tacho.metrics.stats.MemoryArea;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What vLLM has no names for: both ends of a request, and the device. */
class OwnFamiliesTest {
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void theTimeToTheFirstTokenIsTheSumOfItsParts(long seed) {
    Random random = new Random(seed);
    try (FakeEngine engine = new FakeEngine()) {
      int requests = 200;
      long now = 0;
      for (int slot = 0; slot < requests; slot++) {
        long arrival = now += random.nextInt(1_000_000);
        long queued = now += random.nextInt(30_000_000);
        long scheduled = now += random.nextInt(500_000_000);
        engine.events().queued(slot, 0, queued, arrival, 10, 16, 0, 1, 0);
        engine.events().scheduled(slot, 0, scheduled);
        int outputs = 1 + random.nextInt(3);
        for (int i = 1; i <= outputs; i++) {
          long batch = now += random.nextInt(200_000_000);
          long pickUp = batch + random.nextInt(3_000_000);
          long step = slot * 10L + i;
          engine.events().step(step, batch, batch, 1, new StepShape());
          if (i == 1) {
            engine.events().prefillStats(slot, 0, 10, 0, 0, 0);
          }
          engine.events().tokens(slot, 0, 1);
          if (i == outputs) {
            engine.events().finished(slot, 0, FinishReason.LENGTH);
          }
          engine.events().commit();
          engine.outputs().pickUp(step, pickUp);
          engine.outputs().commit();
        }
      }
      double parts = engine.value("tacho:request_frontend_seconds_sum")
          + engine.value("vllm:request_queue_time_seconds_sum") + engine.value("vllm:request_prefill_time_seconds_sum")
          + engine.value("tacho:output_delivery_seconds_sum", "output=\"first\"");
      assertThat(engine.value("vllm:time_to_first_token_seconds_count")).isEqualTo(requests);
      assertThat(engine.value("tacho:request_frontend_seconds_count")).isEqualTo(requests);
      assertThat(engine.value("vllm:time_to_first_token_seconds_sum")).isCloseTo(parts, within(1e-6));
      assertThat(engine.value("tacho:output_delivery_seconds_count", "output=\"later\""))
          .isEqualTo(engine.value("vllm:inter_token_latency_seconds_count")).isPositive();
    }
  }

  @Test
  void theDevicesCountersArePublished() {
    try (FakeEngine engine = new FakeEngine(0, MetricsRegistry.create(MetricsCollector.onDemand()),
        o -> o.workers(2))) {
      assertThat(engine.value("tacho:worker_wait_seconds_total", "worker=\"1\"")).isZero();
      assertThat(engine.value("tacho:counted_flops_total")).isZero();
      engine.source().device().counters(counters -> {
        counters.work(2_000, 300, 40);
        counters.ffiCalls(7);
        counters.time(1_000_000_000, 250_000_000);
        counters.workerWait(1, 500_000_000);
        counters.workerWait(2, 1);
      });
      engine.source().device().memory(MemoryArea.KV_CACHE, 4096);
      assertThat(engine.value("tacho:counted_flops_total")).isEqualTo(2_000);
      assertThat(engine.value("tacho:counted_read_bytes_total")).isEqualTo(300);
      assertThat(engine.value("tacho:counted_write_bytes_total")).isEqualTo(40);
      assertThat(engine.value("tacho:ffi_calls_total")).isEqualTo(7);
      assertThat(engine.value("tacho:engine_bubble_seconds_total")).isEqualTo(0.25);
      assertThat(engine.value("tacho:worker_wait_seconds_total", "worker=\"0\"")).isZero();
      assertThat(engine.value("tacho:worker_wait_seconds_total", "worker=\"1\"")).isEqualTo(0.5);
      assertThat(engine.value("tacho:memory_bytes", "area=\"kv_cache\"")).isEqualTo(4096);
      assertThat(engine.value("tacho:memory_bytes", "area=\"weights\"")).isZero();
      assertThatThrownBy(() -> engine.source().device().memory(MemoryArea.WEIGHTS, -1)).hasMessageContaining("-1");
    }
  }

  @Test
  void ratiosAreThoseOfAWindowOfASecond() {
    DeviceRates rates = new DeviceRates(0);
    DeviceCounters totals = new DeviceCounters(0);
    DevicePeaks peaks = new DevicePeaks(1e12, 1e10);
    totals.work(500_000_000_000L, 1_000_000_000, 1_000_000_000);
    totals.time(1_500_000_000, 0);
    rates.update(999_999_999, totals, peaks);
    assertThat(rates.mfu()).isZero();
    rates.update(2_000_000_000, totals, peaks);
    assertThat(rates.mfu()).isEqualTo(0.25);
    assertThat(rates.mbu()).isEqualTo(0.1);
    assertThat(rates.busy()).isEqualTo(0.75);
    rates.update(3_500_000_000L, totals, peaks);
    assertThat(rates.mfu()).as("nothing was done since").isZero();
    totals.work(900_000_000_000L, 1_000_000_000, 1_000_000_000);
    rates.update(5_000_000_000L, totals, null);
    assertThat(rates.mfu()).as("no peak is known").isZero();
    assertThatThrownBy(() -> new DevicePeaks(0, 1)).hasMessageContaining("must be positive");
    assertThatThrownBy(() -> new DevicePeaks(1, Double.POSITIVE_INFINITY)).hasMessageContaining("finite");
    assertThat(new DevicePeaks(1e308, 1e308).bytesPerSecond()).as("a sum that is not finite").isEqualTo(1e308);
  }

  /** A call may compute for longer than a window and counts at its end. */
  @Test
  void workThatCountsInOneLumpRaisesNoPeak() {
    DevicePeaks peaks = new DevicePeaks(1e9, 1e9);
    DeviceRates rates = new DeviceRates(0);
    DeviceCounters totals = new DeviceCounters(0);
    rates.update(1_000_000_000, totals, peaks);
    assertThat(rates.mfu()).isZero();
    totals.work(2_000_000_000L, 500_000_000L, 0);
    rates.update(2_000_000_000, totals, peaks);
    assertThat(rates.mfu()).isEqualTo(2);
    totals.work(3_000_000_000L, 500_000_000L, 0);
    rates.update(3_000_000_000L, totals, peaks);
    assertThat(rates.mfu()).as("against the peak that was measured").isEqualTo(1);
  }

  @Test
  void ofTwoMeasurementsTheLargerFiguresCount() {
    try (FakeEngine engine = new FakeEngine()) {
      DeviceFeed device = engine.source().device();
      device.peaks(new DevicePeaks(1e30, 1));
      device.peaks(new DevicePeaks(1, 1e30));
      AtomicLong flops = new AtomicLong();
      device.counters(counters -> counters.work(flops.addAndGet(1_000_000_000), flops.get(), 0));
      Await.until("a window has ended", () -> engine.value("tacho:mfu_ratio") > 0);
      assertThat(engine.value("tacho:mfu_ratio")).isLessThan(1e-9);
      assertThat(engine.value("tacho:mbu_ratio")).isLessThan(1e-9);
    }
  }

  @Test
  void aSourceThatThrowsIsNotPolledAgain() {
    AtomicInteger polls = new AtomicInteger();
    try (FakeEngine engine = new FakeEngine()) {
      engine.source().device().counters(counters -> {
        polls.incrementAndGet();
        throw new IllegalStateException("closed");
      });
      engine.source().exposition(ExpositionFormat.TEXT_0_0_4);
      engine.source().exposition(ExpositionFormat.TEXT_0_0_4);
      assertThat(polls).hasValue(1);
    }
  }

  @Test
  void sleepIsSaidOfTheEngineThatSleeps() {
    try (FakeEngine engine = new FakeEngine()) {
      engine.source().sleepState(true, 1);
      assertThat(engine.value("vllm:engine_sleep_state", "sleep_state=\"weights_offloaded\"")).isEqualTo(1);
      assertThat(engine.value("vllm:engine_sleep_state", "sleep_state=\"awake\"")).isZero();
      engine.source().sleepState(false, 1);
      assertThat(engine.value("vllm:engine_sleep_state", "sleep_state=\"awake\"")).isEqualTo(1);
    }
  }
}
