package dev.tacho.engine;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/** A prompt and how to go on from it. Immutable; made by a builder. */
public final class GenerationRequest {
  private final @Nullable String promptText;
  private final @Nullable List<Integer> promptTokenIds;
  private final SamplingParams sampling;
  private final @Nullable String requestId;
  private final int priority;
  private final @Nullable Duration queueTimeout;
  private final OptionalInt dataParallelRank;

  private GenerationRequest(Builder builder) {
    promptText = builder.promptText;
    promptTokenIds = builder.promptTokenIds;
    sampling = builder.sampling;
    requestId = builder.requestId;
    priority = builder.priority;
    queueTimeout = builder.queueTimeout;
    dataParallelRank = builder.dataParallelRank;
  }

  /** A builder with the OpenAI API's default sampling. */
  public static Builder builder() {
    return new Builder();
  }

  /** A request for one prompt text. */
  public static GenerationRequest of(String prompt, SamplingParams sampling) {
    return builder().prompt(prompt).sampling(sampling).build();
  }

  /** The prompt's text; null if the prompt is given as token ids. */
  public @Nullable String promptText() {
    return promptText;
  }

  /** The prompt's token ids; null if it is given as text. */
  public @Nullable List<Integer> promptTokenIds() {
    return promptTokenIds;
  }

  /** How tokens are chosen and when the request stops. */
  public SamplingParams sampling() {
    return sampling;
  }

  /** The id that the caller wants; null to let the engine choose. */
  public @Nullable String requestId() {
    return requestId;
  }

  /** Whom the engine admits first, if its scheduling policy is {@code priority}: the smallest number; usually 0. */
  public int priority() {
    return priority;
  }

  /** How long the request may wait for its first step; null for any time. */
  public @Nullable Duration queueTimeout() {
    return queueTimeout;
  }

  /** The number of the engine that must take the request, where there are several; empty for the least busy one. */
  public OptionalInt dataParallelRank() {
    return dataParallelRank;
  }

  /** Collects values; {@link #build()} checks them. */
  public static final class Builder {
    private static final int MAX_REQUEST_ID_CHARS = 256;

    private @Nullable String promptText;
    private @Nullable List<Integer> promptTokenIds;
    private SamplingParams sampling = SamplingParams.builder().build();
    private @Nullable String requestId;
    private int priority;
    private @Nullable Duration queueTimeout;
    private OptionalInt dataParallelRank = OptionalInt.empty();

    private Builder() {}

    /** The prompt as text; the tokenizer adds what the model wants at its beginning. Replaces token ids. */
    public Builder prompt(String text) {
      promptText = text;
      promptTokenIds = null;
      return this;
    }

    /** The prompt as token ids, taken as they are. Replaces a text. */
    public Builder prompt(int[] tokenIds) {
      List<Integer> ids = new ArrayList<>(tokenIds.length);
      for (int id : tokenIds) {
        ids.add(id);
      }
      return prompt(ids);
    }

    /** The prompt as token ids, taken as they are. Replaces a text. */
    public Builder prompt(List<Integer> tokenIds) {
      promptTokenIds = Collections.unmodifiableList(new ArrayList<>(tokenIds));
      promptText = null;
      return this;
    }

    /** See {@link GenerationRequest#sampling()}. */
    public Builder sampling(SamplingParams params) {
      sampling = params;
      return this;
    }

    /** See {@link GenerationRequest#requestId()}; must be unique among the requests that are not finished. */
    public Builder requestId(String id) {
      requestId = id;
      return this;
    }

    /** See {@link GenerationRequest#priority()}. */
    public Builder priority(int number) {
      priority = number;
      return this;
    }

    /**
     * See {@link GenerationRequest#queueTimeout()}. A request that still waits so long after it was submitted ends at
     * the end of the step under way, with finish reason ABORT and stop reason {@code queue_timeout}.
     */
    public Builder queueTimeout(Duration time) {
      queueTimeout = time;
      return this;
    }

    /** See {@link GenerationRequest#dataParallelRank()}. */
    public Builder dataParallelRank(int engine) {
      dataParallelRank = OptionalInt.of(engine);
      return this;
    }

    /**
     * The request.
     *
     * @throws InvalidRequestException if there is no prompt, the id is empty or too long, the time is not above 0, or
     *     the engine's number is below 0
     */
    public GenerationRequest build() {
      if (promptText == null && promptTokenIds == null) {
        throw new InvalidRequestException("prompt", "a text or token ids are needed");
      }
      if (promptTokenIds != null && promptTokenIds.isEmpty()) {
        throw new InvalidRequestException("prompt", "must have at least one token");
      }
      String id = requestId;
      if (id != null && (id.isEmpty() || id.length() > MAX_REQUEST_ID_CHARS)) {
        throw new InvalidRequestException(
            "request_id", "must have 1 to " + MAX_REQUEST_ID_CHARS + " characters, has " + id.length());
      }
      if (queueTimeout != null && !queueTimeout.isPositive()) {
        throw new InvalidRequestException("queue_timeout", "must be above 0, is " + queueTimeout);
      }
      if (dataParallelRank.isPresent() && dataParallelRank.getAsInt() < 0) {
        throw new InvalidRequestException(
            "data_parallel_rank", "must be at least 0, is " + dataParallelRank.getAsInt());
      }
      return new GenerationRequest(this);
    }
  }
}
