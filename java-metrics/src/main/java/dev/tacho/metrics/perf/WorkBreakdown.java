package dev.tacho.metrics.perf;

import dev.tacho.metrics.event.StepShape;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** The parts of estimated work and what the steps were like that it was estimated for, summed. One thread. */
public final class WorkBreakdown implements WorkSink {
  private final Map<String, Long> flops = new LinkedHashMap<>();
  private final Map<String, Long> readBytes = new LinkedHashMap<>();
  private final Map<String, Long> writeBytes = new LinkedHashMap<>();
  private final Map<String, Long> context = new LinkedHashMap<>();
  private long prefillRequests;
  private long decodeTokens;
  private long steps;
  private long estimateNanos;

  /** Forgets everything. */
  public void clear() {
    flops.clear();
    readBytes.clear();
    writeBytes.clear();
    context.clear();
    prefillRequests = 0;
    decodeTokens = 0;
    steps = 0;
    estimateNanos = 0;
  }

  /** Adds everything of another. */
  public void add(WorkBreakdown other) {
    other.flops.forEach((part, value) -> flops.merge(part, value, Long::sum));
    other.readBytes.forEach((part, value) -> readBytes.merge(part, value, Long::sum));
    other.writeBytes.forEach((part, value) -> writeBytes.merge(part, value, Long::sum));
    other.context.forEach((part, value) -> context.merge(part, value, Long::sum));
    prefillRequests += other.prefillRequests;
    decodeTokens += other.decodeTokens;
    steps += other.steps;
    estimateNanos += other.estimateNanos;
  }

  /** Adds what a step was like, and how long its estimate took. */
  void step(StepShape shape, long nanos) {
    prefillRequests += shape.prefillRequests();
    decodeTokens += shape.decodeTokens();
    steps++;
    estimateNanos += nanos;
    context.merge("prefill_num_tokens", shape.prefillTokens(), Long::sum);
    context.merge("prefill_context_len", shape.prefillContext(), Long::sum);
    context.merge("decode_num_tokens", shape.decodeTokens(), Long::sum);
    context.merge("decode_context_len", shape.decodeContext(), Long::sum);
    context.merge("token_context_product", shape.product(), Long::sum);
  }

  @Override
  public void flops(String part, long operations) {
    flops.merge(part, operations, Long::sum);
  }

  @Override
  public void read(String part, long bytes) {
    readBytes.merge(part, bytes, Long::sum);
  }

  @Override
  public void write(String part, long bytes) {
    writeBytes.merge(part, bytes, Long::sum);
  }

  /** Floating point operations by part. A view. */
  public Map<String, Long> flops() {
    return Collections.unmodifiableMap(flops);
  }

  /** Bytes read by part. A view. */
  public Map<String, Long> readBytes() {
    return Collections.unmodifiableMap(readBytes);
  }

  /** Bytes written by part. A view. */
  public Map<String, Long> writeBytes() {
    return Collections.unmodifiableMap(writeBytes);
  }

  /** Sums over the steps' shapes. A view. */
  public Map<String, Long> context() {
    return Collections.unmodifiableMap(context);
  }

  /** Prefills of the steps. */
  public long prefillRequests() {
    return prefillRequests;
  }

  /** Decodes of the steps, each of one token. */
  public long decodeRequests() {
    return decodeTokens;
  }

  /** Steps. */
  public long steps() {
    return steps;
  }

  /** Time that the estimates took. */
  public long estimateNanos() {
    return estimateNanos;
  }
}
