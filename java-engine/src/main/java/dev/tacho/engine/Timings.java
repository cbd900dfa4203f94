package dev.tacho.engine;

import java.time.Duration;

/**
 * Where the time of a request went. Queue, prefill and decode follow each other without a gap; an interval whose end
 * was never reached (a request aborted while it waited) is zero. For several completions: from the first to start to
 * the last to end.
 *
 * @param queue from entering the scheduler to first running
 * @param prefill from first running to the first token
 * @param decode from the first token to the last
 * @param timeToFirstToken from {@code submit} to the first token's being there for the reader, tokenising included
 * @param endToEnd from {@code submit} to the end of the request
 */
public record Timings(
    Duration queue, Duration prefill, Duration decode, Duration timeToFirstToken, Duration endToEnd) {}
