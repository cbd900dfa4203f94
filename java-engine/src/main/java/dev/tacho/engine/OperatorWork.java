package dev.tacho.engine;

/**
 * What all workers of an engine have done on one operator since it was opened.
 *
 * @param operator its name in the native library, e.g. {@code kv_write}
 * @param calls kernel calls, one a worker and range
 * @param nanos that the workers spent in it, added up; their waiting for each other is not in it
 * @param bytes of its operands and results, each once, as if from memory
 * @param flops floating point operations, a multiply-add is two
 */
public record OperatorWork(String operator, long calls, long nanos, long bytes, long flops) {}
