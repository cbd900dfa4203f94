package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.Completion;
import dev.tacho.engine.PositionLogprobs;
import dev.tacho.engine.StopReason;
import dev.tacho.engine.TokenDelta;
import dev.tacho.engine.TokenLogprob;
import dev.tacho.engine.Usage;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.stats.RequestSpeculation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The JSON of one answer of {@code /v1/completions}, whole or in pieces.
 *
 * @param id the answer's id
 * @param created seconds since 1970
 * @param model the served name
 * @param completionsPerPrompt n; choice i of prompt p has index p * n + i
 */
record CompletionJson(String id, long created, String model, int completionsPerPrompt) {
  /** The whole answer. */
  ObjectNode whole(List<Completion> completions) {
    ObjectNode body = frame();
    ArrayNode choices = body.putArray("choices");
    for (int prompt = 0; prompt < completions.size(); prompt++) {
      Completion completion = completions.get(prompt);
      for (Completion.Choice choice : completion.choices()) {
        choices.add(
            choice(
                prompt * completionsPerPrompt + choice.index(),
                choice.text(),
                choice.logprobs(),
                0,
                choice.finishReason(),
                choice.stopReason()));
      }
    }
    body.set("usage", usage(completions));
    addSpeculation(body, completions);
    return body;
  }

  /**
   * One piece.
   *
   * @param prompt which of the prompts
   * @param delta the piece
   * @param textOffset characters of the choice that came before
   * @param nullUsage pieces carry {@code "usage": null} where a piece with the usage comes at the end
   */
  ObjectNode piece(int prompt, TokenDelta delta, int textOffset, boolean nullUsage) {
    ObjectNode body = frame();
    body.putArray("choices")
        .add(
            choice(
                prompt * completionsPerPrompt + delta.index(),
                delta.text(),
                delta.logprobs(),
                textOffset,
                delta.finishReason(),
                delta.stopReason()));
    if (nullUsage) {
      body.putNull("usage");
    }
    return body;
  }

  /** The last piece: no choices, only the token counts and what became of the drafts. */
  ObjectNode usagePiece(List<Completion> completions) {
    ObjectNode body = frame();
    body.putArray("choices");
    body.set("usage", usage(completions));
    addSpeculation(body, completions);
    return body;
  }

  /** What became of the drafts of the one prompt, under {@code metrics.speculative_decoding}, if it is known. */
  private static void addSpeculation(ObjectNode body, List<Completion> completions) {
    RequestSpeculation speculation = completions.size() == 1 ? completions.getFirst().speculation() : null;
    if (speculation == null) {
      return;
    }
    ObjectNode node = body.putObject("metrics").putObject("speculative_decoding");
    node.put("mean_acceptance_length", speculation.meanAcceptanceLength());
    node.put("draft_acceptance_rate", speculation.acceptanceRate());
    ArrayNode histogram = node.putArray("acceptance_histogram");
    for (long steps : speculation.acceptanceHistogram()) {
      histogram.add(steps);
    }
    node.put("num_spec_steps", speculation.steps());
    node.put("num_accepted_draft_tokens", speculation.acceptedTokens());
    node.put("num_draft_tokens", speculation.draftedTokens());
    node.put("num_spec_tokens", speculation.maxDraftTokens());
    if (!speculation.acceptedByStep().isEmpty()) {
      speculation.acceptedByStep().forEach(node.putArray("per_step_accepted")::add);
      speculation.draftedByStep().forEach(node.putArray("per_step_drafted")::add);
    }
  }

  private ObjectNode frame() {
    ObjectNode body = Json.object();
    body.put("id", id);
    body.put("object", "text_completion");
    body.put("created", created);
    body.put("model", model);
    return body;
  }

  /** The token counts of all prompts together. */
  private static ObjectNode usage(List<Completion> completions) {
    int promptTokens = 0;
    int cachedTokens = 0;
    int generatedTokens = 0;
    for (Completion completion : completions) {
      promptTokens += completion.usage().promptTokens();
      cachedTokens += completion.usage().cachedTokens();
      generatedTokens += completion.usage().generatedTokens();
    }
    Usage usage = new Usage(promptTokens, cachedTokens, generatedTokens);
    ObjectNode node = Json.object();
    node.put("prompt_tokens", usage.promptTokens());
    node.put("completion_tokens", usage.generatedTokens());
    node.put("total_tokens", usage.totalTokens());
    node.putObject("prompt_tokens_details").put("cached_tokens", usage.cachedTokens());
    return node;
  }

  private static ObjectNode choice(
      int index,
      String text,
      List<PositionLogprobs> logprobs,
      int textOffset,
      @Nullable FinishReason finishReason,
      @Nullable StopReason stopReason) {
    ObjectNode node = Json.object();
    node.put("index", index);
    node.put("text", text);
    if (logprobs.isEmpty()) {
      node.putNull("logprobs");
    } else {
      node.set("logprobs", logprobs(logprobs, textOffset));
    }
    node.put("finish_reason", finishReason == null ? null : finishReason.label());
    switch (stopReason) {
      case StopReason.StopString(String string) -> node.put("stop_reason", string);
      case StopReason.StopToken(int tokenId) -> node.put("stop_reason", tokenId);
      case StopReason.Aborted(String cause) -> node.put("stop_reason", cause);
      case null -> node.putNull("stop_reason");
    }
    return node;
  }

  private static ObjectNode logprobs(List<PositionLogprobs> positions, int textOffset) {
    ObjectNode node = Json.object();
    ArrayNode offsets = node.putArray("text_offset");
    ArrayNode chosen = node.putArray("token_logprobs");
    ArrayNode tokens = node.putArray("tokens");
    ArrayNode top = node.putArray("top_logprobs");
    int offset = textOffset;
    for (PositionLogprobs position : positions) {
      offsets.add(offset);
      chosen.add(position.chosen().logprob());
      tokens.add(position.chosen().text());
      ObjectNode alternatives = top.addObject();
      for (TokenLogprob token : position.top()) {
        alternatives.put(token.text(), token.logprob());
      }
      if (position.top().stream().noneMatch(t -> t.tokenId() == position.chosen().tokenId())) {
        alternatives.put(position.chosen().text(), position.chosen().logprob());
      }
      offset += position.chosen().text().length();
    }
    return node;
  }
}
