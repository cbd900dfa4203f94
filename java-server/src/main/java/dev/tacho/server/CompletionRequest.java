package dev.tacho.server;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.GenerationRequest;
import dev.tacho.engine.SamplingParams;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The body of {@code POST /v1/completions}, read and checked. Every field is honoured, or refused with its name: a
 * field that is unknown, or known but not had here with a value that would change the answer, is a bad request.
 *
 * @param model the model asked for, or null for the one that is served
 * @param prompts one or more
 * @param sampling the same for all prompts
 * @param stream answer in pieces
 * @param includeUsage a last piece with the token counts
 * @param priority whom the engine admits first, if its policy goes by it: the smallest number
 * @param requestId the client's own id, or null
 */
record CompletionRequest(
    @Nullable String model,
    List<Prompt> prompts,
    SamplingParams sampling,
    boolean stream,
    boolean includeUsage,
    int priority,
    @Nullable String requestId) {
  private static final int MAX_PROMPTS = 128;

  /** Fields with a meaning here. */
  private static final Set<String> HONOURED =
      Set.of(
          "model",
          "prompt",
          "max_tokens",
          "min_tokens",
          "temperature",
          "top_p",
          "top_k",
          "min_p",
          "n",
          "seed",
          "stop",
          "stop_token_ids",
          "ignore_eos",
          "logprobs",
          "presence_penalty",
          "frequency_penalty",
          "repetition_penalty",
          "logit_bias",
          "allowed_token_ids",
          "bad_words",
          "stream",
          "stream_options",
          "priority",
          "request_id",
          "user");

  /** Fields that are taken only with the value that changes nothing; null is always such a value. */
  private static final Map<String, Set<String>> NEUTRAL =
      Map.of(
          "echo", Set.of("false"),
          "best_of", Set.of("1"),
          "suffix", Set.of("\"\""));

  /** A prompt as text or as token ids. */
  sealed interface Prompt {
    /** Text, which the tokenizer turns into ids. */
    record Text(String text) implements Prompt {}

    /** Token ids, taken as they are. */
    record TokenIds(List<Integer> ids) implements Prompt {}
  }

  /** Reads a body. */
  static CompletionRequest parse(byte[] body) {
    ObjectNode json = Json.readObject(body);
    checkFields(json);
    Fields fields = new Fields(json);
    SamplingParams sampling =
        SamplingParams.builder()
            .maxTokens(maxTokens(fields))
            .minTokens(fields.integer("min_tokens", 0))
            .temperature(fields.number("temperature", 1))
            .topP(fields.number("top_p", 1))
            .topK(Math.max(0, fields.integer("top_k", 0, -1)))
            .minP(fields.number("min_p", 0))
            .n(fields.integer("n", 1))
            .stop(fields.strings("stop"))
            .stopTokenIds(fields.integers("stop_token_ids"))
            .ignoreEos(fields.bool("ignore_eos", false))
            .logprobs(fields.integer("logprobs", -1, 0))
            .presencePenalty(fields.number("presence_penalty", 0))
            .frequencyPenalty(fields.number("frequency_penalty", 0))
            .repetitionPenalty(fields.number("repetition_penalty", 1))
            .logitBias(logitBias(fields.value("logit_bias")))
            .allowedTokenIds(allowedTokenIds(fields))
            .badWords(fields.strings("bad_words"))
            .build();
    JsonNode seed = fields.value("seed");
    if (seed != null) {
      if (!seed.canConvertToLong() || !seed.isIntegralNumber()) {
        throw ApiError.invalid("seed", "seed: must be a whole number of 64 bits, is " + seed);
      }
      sampling = sampling.withSeed(seed.longValue());
    }
    boolean stream = fields.bool("stream", false);
    boolean includeUsage = includeUsage(fields.value("stream_options"), stream);
    return new CompletionRequest(
        fields.string("model"), prompts(fields.value("prompt")), sampling, stream, includeUsage,
        fields.integer("priority", 0), fields.string("request_id"));
  }

  /** The engine's word for "no limit" is a number like any other here, and more than any context has. */
  private static int maxTokens(Fields fields) {
    int tokens = fields.integer("max_tokens", 16);
    if (tokens == SamplingParams.UNTIL_CONTEXT_END) {
      throw ApiError.invalid("max_tokens", "max_tokens: must be below " + tokens);
    }
    return tokens;
  }

  /** By token id; JSON has it as the name of a field. */
  private static Map<Integer, Float> logitBias(@Nullable JsonNode node) {
    if (node == null) {
      return Map.of();
    }
    if (!(node instanceof ObjectNode object)) {
      throw ApiError.invalid("logit_bias", "logit_bias: must be an object of token ids and numbers, is " + node);
    }
    Map<Integer, Float> biases = new HashMap<>();
    for (Map.Entry<String, JsonNode> bias : object.properties()) {
      if (!bias.getKey().matches("\\d{1,9}") || !bias.getValue().isNumber()) {
        throw ApiError.invalid(
            "logit_bias", "logit_bias: must give a number for a token id, has " + bias.getValue() + " for '"
                + bias.getKey() + "'");
      }
      biases.put(Integer.valueOf(bias.getKey()), bias.getValue().floatValue());
    }
    return biases;
  }

  /** An empty list allows nothing, which no engine can fulfil. */
  private static List<Integer> allowedTokenIds(Fields fields) {
    List<Integer> ids = fields.integers("allowed_token_ids");
    if (ids.isEmpty() && fields.value("allowed_token_ids") != null) {
      throw ApiError.invalid("allowed_token_ids", "allowed_token_ids: must have at least one token id");
    }
    return ids;
  }

  private static void checkFields(ObjectNode json) {
    for (Map.Entry<String, JsonNode> field : json.properties()) {
      String name = field.getKey();
      if (HONOURED.contains(name)) {
        continue;
      }
      Set<String> neutral = NEUTRAL.get(name);
      if (neutral == null) {
        throw ApiError.invalid(
            name, "unknown field '" + name + "'; this server knows " + String.join(", ", new TreeSet<>(HONOURED)));
      }
      if (!field.getValue().isNull() && !neutral.contains(field.getValue().toString())) {
        throw ApiError.invalid(
            name, name + ": not supported with the value " + field.getValue() + "; leave it out");
      }
    }
  }

  private static boolean includeUsage(@Nullable JsonNode options, boolean stream) {
    if (options == null) {
      return false;
    }
    if (!(options instanceof ObjectNode object)) {
      throw ApiError.invalid("stream_options", "stream_options: must be an object, is " + options);
    }
    if (!stream) {
      throw ApiError.invalid("stream_options", "stream_options: only goes with \"stream\": true");
    }
    for (String name : (Iterable<String>) object::fieldNames) {
      if (!name.equals("include_usage")) {
        throw ApiError.invalid(
            "stream_options", "stream_options: unknown field '" + name + "', include_usage is known");
      }
    }
    return new Fields(object).bool("include_usage", false);
  }

  private static List<Prompt> prompts(@Nullable JsonNode node) {
    if (node == null) {
      throw ApiError.invalid("prompt", "prompt: is required");
    }
    if (node.isTextual()) {
      return List.of(new Prompt.Text(node.textValue()));
    }
    if (!node.isArray() || node.isEmpty()) {
      throw ApiError.invalid("prompt", "prompt: must be a string, token ids, or a list of these, is " + node);
    }
    if (node.get(0).isNumber()) {
      return List.of(new Prompt.TokenIds(Fields.integers("prompt", node)));
    }
    if (node.size() > MAX_PROMPTS) {
      throw ApiError.invalid("prompt", "prompt: at most " + MAX_PROMPTS + " in one request, there are " + node.size());
    }
    List<Prompt> prompts = new ArrayList<>();
    for (JsonNode element : node) {
      if (element.isTextual()) {
        prompts.add(new Prompt.Text(element.textValue()));
      } else if (element.isArray() && !element.isEmpty()) {
        prompts.add(new Prompt.TokenIds(Fields.integers("prompt", element)));
      } else {
        throw ApiError.invalid("prompt", "prompt: element " + prompts.size() + " is neither text nor token ids");
      }
    }
    return prompts;
  }

  /** The engine's request for one of the prompts. */
  GenerationRequest toGeneration(int promptIndex, String id, OptionalInt rank) {
    GenerationRequest.Builder builder =
        GenerationRequest.builder().sampling(sampling).priority(priority).requestId(id);
    rank.ifPresent(builder::dataParallelRank);
    return switch (prompts.get(promptIndex)) {
      case Prompt.Text(String text) -> builder.prompt(text).build();
      case Prompt.TokenIds(List<Integer> ids) -> builder.prompt(ids).build();
    };
  }

  /** The fields of an object with their types checked; null counts as absent. */
  private record Fields(ObjectNode json) {
    @Nullable JsonNode value(String name) {
      JsonNode node = json.get(name);
      return node == null || node.isNull() ? null : node;
    }

    @Nullable String string(String name) {
      JsonNode node = value(name);
      if (node == null) {
        return null;
      }
      if (!node.isTextual()) {
        throw ApiError.invalid(name, name + ": must be a string, is " + node);
      }
      return node.textValue();
    }

    boolean bool(String name, boolean absent) {
      JsonNode node = value(name);
      if (node == null) {
        return absent;
      }
      if (!node.isBoolean()) {
        throw ApiError.invalid(name, name + ": must be true or false, is " + node);
      }
      return node.booleanValue();
    }

    int integer(String name, int absent) {
      return integer(name, absent, Integer.MIN_VALUE);
    }

    int integer(String name, int absent, int minimum) {
      JsonNode node = value(name);
      if (node == null) {
        return absent;
      }
      int number = integer(name, node);
      if (number < minimum) {
        throw ApiError.invalid(name, name + ": must be at least " + minimum + ", is " + number);
      }
      return number;
    }

    static int integer(String name, JsonNode node) {
      if (!node.isIntegralNumber() || !node.canConvertToInt()) {
        throw ApiError.invalid(name, name + ": must be a whole number, is " + node);
      }
      return node.intValue();
    }

    double number(String name, double absent) {
      JsonNode node = value(name);
      if (node == null) {
        return absent;
      }
      if (!node.isNumber()) {
        throw ApiError.invalid(name, name + ": must be a number, is " + node);
      }
      return node.doubleValue();
    }

    List<String> strings(String name) {
      JsonNode node = value(name);
      if (node == null) {
        return List.of();
      }
      if (node.isTextual()) {
        return List.of(node.textValue());
      }
      List<String> strings = new ArrayList<>();
      for (JsonNode element : node) {
        if (!element.isTextual()) {
          throw ApiError.invalid(name, name + ": must hold strings, element " + strings.size() + " is " + element);
        }
        strings.add(element.textValue());
      }
      if (!node.isArray()) {
        throw ApiError.invalid(name, name + ": must be a string or a list of strings, is " + node);
      }
      return strings;
    }

    List<Integer> integers(String name) {
      JsonNode node = value(name);
      return node == null ? List.of() : integers(name, node);
    }

    static List<Integer> integers(String name, JsonNode node) {
      if (!node.isArray()) {
        throw ApiError.invalid(name, name + ": must be a list of whole numbers, is " + node);
      }
      List<Integer> numbers = new ArrayList<>(node.size());
      for (JsonNode element : node) {
        numbers.add(integer(name, element));
      }
      return numbers;
    }
  }
}
