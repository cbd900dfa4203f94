package dev.tacho.metrics.stats;

/**
 * A step's run through a captured CUDA graph.
 *
 * @param unpaddedTokens tokens of the step
 * @param paddedTokens tokens of the graph that ran them
 * @param paddings their difference
 * @param runtimeMode which kind of graph, NONE if none
 */
public record GraphStat(int unpaddedTokens, int paddedTokens, int paddings, String runtimeMode) {}
