package dev.tacho.engine.model;

/**
 * The work that all workers of a runner have done on one operation since it was made.
 *
 * @param calls kernel calls, one a worker and range
 * @param flops floating point operations, a multiply-add is two
 * @param readBytes bytes of the operands read, each once
 * @param writeBytes bytes written
 */
public record OperationCounters(long calls, long flops, long readBytes, long writeBytes) {}
