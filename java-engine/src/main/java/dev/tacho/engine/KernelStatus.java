package dev.tacho.engine;

/**
 * Whether one way of computing can be had on this machine; see {@link Engine#kernels()}.
 *
 * @param id the option word: {@code cuda}, {@code native}, {@code vector} or {@code scalar}
 * @param ready true if it can be had
 * @param detail what exactly would run, or why it cannot be had
 */
public record KernelStatus(String id, boolean ready, String detail) {}
