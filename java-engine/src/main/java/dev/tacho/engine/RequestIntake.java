package dev.tacho.engine;

import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.metrics.stats.RequestSpeculation;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Makes requests ready for an engine: tokenizes the prompt, checks prompt and parameters against the model, makes the
 * sequences. The engines of a group share one. Any thread.
 */
final class RequestIntake {
  private static final long SEED_STEP = 0x9E3779B97F4A7C15L;

  private final EngineConfig config;
  private final TextCodec codec;
  private final int maxModelLen;
  private final AtomicLong freshSeed;

  /**
   * @param config has the start of the random numbers of requests that bring no seed, and what is gathered of drafts
   * @param codec text and token ids
   * @param maxModelLen tokens of prompt and output together at most
   */
  RequestIntake(EngineConfig config, TextCodec codec, int maxModelLen) {
    this.config = config;
    this.codec = codec;
    this.maxModelLen = maxModelLen;
    freshSeed = new AtomicLong(config.seed());
  }

  /**
   * Gives a request its prompt's ids and its sequences.
   *
   * @return prompt tokens of all its sequences together
   * @throws EngineException if prompt or parameters do not go with the model
   */
  long prepare(Generation generation) {
    int[] ids = promptIds(generation.request());
    generation.sampling().checkTokenIds(codec.vocabSize());
    int maxTokens = checkedMaxTokens(generation.sampling(), ids.length);
    generation.prepare(ids, records(generation, ids, maxTokens));
    gatherSpeculation(generation);
    return (long) ids.length * generation.records().length;
  }

  private void gatherSpeculation(Generation generation) {
    String wanted = config.perRequestSpecDecodeMetrics();
    if (!wanted.equals("none") && config.numSpeculativeTokens() > 0 && generation.sampling().n() == 1) {
      generation.gather(new RequestSpeculation(config.numSpeculativeTokens(), wanted.equals("detailed")));
    }
  }

  List<Integer> encode(String text) {
    int[] ids = TextPool.call(() -> codec.encode(text));
    return Arrays.stream(ids).boxed().toList();
  }

  String decode(List<Integer> ids) {
    int[] array = toArray(ids);
    return TextPool.call(() -> codec.decode(array));
  }

  private static int[] toArray(List<Integer> ids) {
    return ids.stream().mapToInt(Integer::intValue).toArray();
  }

  private int[] promptIds(GenerationRequest request) {
    List<Integer> given = request.promptTokenIds();
    if (given == null) {
      int[] ids = codec.encode(request.promptText() == null ? "" : request.promptText());
      if (ids.length == 0) {
        throw new InvalidRequestException("prompt", "must have at least one token; this text has none");
      }
      return ids;
    }
    int[] ids = toArray(given);
    int vocabSize = codec.vocabSize();
    for (int i = 0; i < ids.length; i++) {
      if (ids[i] < 0 || ids[i] >= vocabSize) {
        throw new InvalidRequestException(
            "prompt", "token id " + ids[i] + " at position " + i + " is not in [0, " + vocabSize + ")");
      }
    }
    return ids;
  }

  /** Output tokens at most; as the OpenAI API documents it, prompt and {@code max_tokens} must fit together. */
  private int checkedMaxTokens(SamplingParams sampling, int promptTokens) {
    int limit = maxModelLen;
    if (promptTokens >= limit) {
      throw new PromptTooLongException(promptTokens, limit);
    }
    int left = limit - promptTokens;
    if (sampling.maxTokens() == SamplingParams.UNTIL_CONTEXT_END) {
      return left;
    }
    if (sampling.maxTokens() > left) {
      throw new InvalidRequestException(
          "max_tokens",
          sampling.maxTokens()
              + " and the prompt's "
              + promptTokens
              + " tokens are more than the context length (max_model_len) of "
              + limit
              + " tokens; at most "
              + left
              + " are left for the output");
    }
    return sampling.maxTokens();
  }

  private RequestRecord[] records(Generation generation, int[] promptIds, int maxTokens) {
    SamplingParams sampling = generation.sampling();
    long seed = sampling.seed().isPresent() ? sampling.seed().getAsLong() : freshSeed.getAndAdd(SEED_STEP);
    int[][] badWords = BadWords.tokenIds(sampling.badWords(), codec);
    RequestRecord[] records = new RequestRecord[sampling.n()];
    for (int i = 0; i < records.length; i++) {
      String id = records.length == 1 ? generation.requestId() : i + "_" + generation.requestId();
      SequenceOutput output =
          new SequenceOutput(codec.stream(promptIds), new StopStringFilter(sampling.stop()), sampling.minTokens());
      SamplerState sampler = new SamplerState(sampling, codec.eosTokenIds(), seed + i, promptIds, badWords);
      records[i] = new RequestRecord(generation, i, id, sampler, maxTokens, output);
    }
    return records;
  }
}
