package dev.tacho.engine.model;

/**
 * The work that all workers of a runner have done on one operation since it was made.
 *
 * @param calls kernel calls, one a worker and range
 * @param flops floating point operations, a multiply-add is two
 * @param readBytes bytes of the operands read, each once
 * @param writeBytes bytes written
 * @param nanos nanoseconds that the workers spent in it, added up: with T workers at most T times the elapsed time. A
 *     worker's wait for the others at the operation's end is not in it
 */
public record OperationCounters(long calls, long flops, long readBytes, long writeBytes, long nanos) {}
