package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import dev.tacho.metrics.prometheus.MetricFamily.Question;
import dev.tacho.metrics.stats.MemoryArea;
import java.util.Arrays;
import java.util.List;

/** The part of the {@link MetricCatalog} that vLLM has no names for: both ends of a request, and the device's work. */
final class OwnFamilies {
  private static final FamilyTable TABLE = new FamilyTable();

  static final MetricFamily REQUEST_FRONTEND = TABLE.histogram("tacho:request_frontend_seconds")
      .buckets(BucketFamily.HANDOVER).unit("seconds").asks(Question.LATENCY).moves(Moment.FIRST_OUTPUT)
      .help("Arrival of a request to the queueing of a sequence of it: tokenising, the rest of the step under way.");
  static final MetricFamily OUTPUT_DELIVERY = TABLE.histogram("tacho:output_delivery_seconds")
      .by("output", "first", "later").buckets(BucketFamily.HANDOVER).unit("seconds").asks(Question.LATENCY)
      .moves(Moment.OUTPUT)
      .help("End of a step to the pick-up of an output of it, by whether it is the first of its sequence.");
  static final MetricFamily COUNTED_FLOPS = TABLE.counter("tacho:counted_flops_total")
      .unit("floating point operations").asks(Question.RESOURCES).moves(Moment.POLL)
      .help("Floating point operations that the kernels counted: causal part alone, rows of logits as they were.");
  static final MetricFamily COUNTED_READ_BYTES = TABLE.counter("tacho:counted_read_bytes_total").unit("bytes")
      .asks(Question.RESOURCES).moves(Moment.POLL)
      .help("Bytes of operands that the kernels counted as read, weights once a step.");
  static final MetricFamily COUNTED_WRITE_BYTES = TABLE.counter("tacho:counted_write_bytes_total").unit("bytes")
      .asks(Question.RESOURCES).moves(Moment.POLL)
      .help("Bytes of results that the kernels counted as written.");
  static final MetricFamily MFU = TABLE.gauge("tacho:mfu_ratio").unit("ratio").asks(Question.RESOURCES)
      .moves(Moment.WINDOW)
      .help("Counted operations a second over what the device can do at its peak; 0 while the peak is unknown.");
  static final MetricFamily MBU = TABLE.gauge("tacho:mbu_ratio").unit("ratio").asks(Question.RESOURCES)
      .moves(Moment.WINDOW)
      .help("Counted bytes a second over what the memory can do at its peak; 0 while the peak is unknown.");
  static final MetricFamily DEVICE_BUSY = TABLE.gauge("tacho:device_busy_ratio").unit("ratio")
      .asks(Question.RESOURCES).moves(Moment.WINDOW)
      .help("Share of the time in which a step was on the device.");
  static final MetricFamily ENGINE_BUBBLE = TABLE.counter("tacho:engine_bubble_seconds_total").unit("seconds")
      .asks(Question.RESOURCES).moves(Moment.POLL)
      .help("Time in which sequences could run and no step was on the device.");
  static final MetricFamily WORKER_WAIT = TABLE.counter("tacho:worker_wait_seconds_total").countedByEngine("worker")
      .gate(Gate.WORKERS).unit("seconds").asks(Question.RESOURCES).moves(Moment.POLL)
      .help("Time that a worker waited for the others within steps.");
  static final MetricFamily FFI_CALLS = TABLE.counter("tacho:ffi_calls_total").unit("calls")
      .asks(Question.RESOURCES).moves(Moment.POLL)
      .help("Calls from Java into the native library.");
  static final MetricFamily MEMORY = TABLE.gauge("tacho:memory_bytes")
      .by("area", Arrays.stream(MemoryArea.values()).map(MemoryArea::label).toList()).unit("bytes")
      .asks(Question.RESOURCES).moves(Moment.SAID)
      .help("Memory outside the heap that the engine holds, by what it is for.");

  private OwnFamilies() {}

  /** The rows, in the order of the exposition. */
  static List<MetricFamily> rows() {
    return TABLE.rows();
  }
}
