package dev.tacho.metrics.perf;

/** Takes the parts of a step's estimated work, each under the name of its operand, such as {@code attn.qkv_proj}. */
public interface WorkSink {
  /** Floating point operations of a part. */
  void flops(String part, long operations);

  /** Bytes read for a part. */
  void read(String part, long bytes);

  /** Bytes written by a part. */
  void write(String part, long bytes);
}
