package dev.tacho.engine;

import dev.tacho.engine.sampling.NgramProposer;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How tokens are guessed before they are computed: by n-grams. The longest end of a sequence, of so many tokens, that
 * stands in it once before is looked up there, and the tokens behind it are the draft. A step then computes them all,
 * and keeps those which it would have given without a draft: the output is the same, in fewer steps where it repeats
 * what stands in the prompt.
 *
 * @param numSpeculativeTokens tokens of a draft at most, from 1 to {@value #MAX_TOKENS}
 * @param promptLookupMin tokens of the end that is looked up at least, from 1
 * @param promptLookupMax and at most
 */
public record SpeculativeConfig(int numSpeculativeTokens, int promptLookupMin, int promptLookupMax) {
  /** Tokens of a draft at most: what an event has room for. */
  public static final int MAX_TOKENS = 255;

  private static final int DEFAULT_LOOKUP = 5;
  private static final int MAX_DIGITS = 9;
  private static final String METHOD = "method";
  private static final String TOKENS = "num_speculative_tokens";
  private static final String MIN = "prompt_lookup_min";
  private static final String MAX = "prompt_lookup_max";
  private static final Pattern PAIR = Pattern.compile("\\s*\"(\\w+)\"\\s*:\\s*(\"\\w+\"|\\d+)\\s*(,|$)");

  /** Checks the limits. */
  public SpeculativeConfig {
    check(numSpeculativeTokens >= 1 && numSpeculativeTokens <= MAX_TOKENS,
        TOKENS + " must be from 1 to " + MAX_TOKENS + ", is " + numSpeculativeTokens);
    check(promptLookupMin >= 1, MIN + " must be at least 1, is " + promptLookupMin);
    check(promptLookupMin <= promptLookupMax,
        MIN + " must be at most " + MAX + ", " + promptLookupMax + "; is " + promptLookupMin);
  }

  private static void check(boolean holds, String problem) {
    if (!holds) {
      throw new ConfigurationException(EngineOption.SPECULATIVE_CONFIG.optionName(), problem);
    }
  }

  /**
   * Reads vLLM's syntax: a JSON object with {@code method} "ngram", {@code num_speculative_tokens} and, if wanted,
   * {@code prompt_lookup_min} and {@code prompt_lookup_max}. One of the two alone stands for both; without them both
   * are 5.
   *
   * @throws ConfigurationException if the text is something else; names what
   */
  static SpeculativeConfig parse(String json) {
    Map<String, String> values = pairs(json);
    String method = values.remove(METHOD);
    check("\"ngram\"".equals(method), METHOD + " must be \"ngram\", is " + (method == null ? "missing" : method));
    String tokens = values.remove(TOKENS);
    check(tokens != null, TOKENS + " is missing");
    String min = values.remove(MIN);
    String max = values.remove(MAX);
    check(values.isEmpty(), "unknown: " + String.join(", ", values.keySet()));
    int fallback = max != null ? number(MAX, max) : DEFAULT_LOOKUP;
    int lookupMin = min != null ? number(MIN, min) : fallback;
    int lookupMax = max != null ? fallback : lookupMin;
    return new SpeculativeConfig(number(TOKENS, String.valueOf(tokens)), lookupMin, lookupMax);
  }

  private static Map<String, String> pairs(String json) {
    String text = json.strip();
    boolean isObject = text.startsWith("{") && text.endsWith("}") && text.length() > 1;
    check(isObject, "expected a JSON object, found '" + json + "'");
    Map<String, String> values = new HashMap<>();
    String inside = text.substring(1, text.length() - 1);
    Matcher pair = PAIR.matcher(inside);
    int at = 0;
    boolean more = !inside.isBlank();
    while (more) {
      check(pair.find() && pair.start() == at, "expected names with words or whole numbers, found '" + json + "'");
      check(values.put(pair.group(1), pair.group(2)) == null, pair.group(1) + " is there twice");
      at = pair.end();
      more = pair.group(3).equals(",");
    }
    check(inside.substring(at).isBlank(), "expected names with words or whole numbers, found '" + json + "'");
    return values;
  }

  private static int number(String name, String text) {
    check(Character.isDigit(text.charAt(0)), name + " must be a whole number, is " + text);
    check(text.length() <= MAX_DIGITS, name + " must have at most " + MAX_DIGITS + " digits, is " + text);
    return Integer.parseInt(text);
  }

  /** Makes drafts, for one thread. */
  NgramProposer proposer(int maxModelLen) {
    return new NgramProposer(promptLookupMin, promptLookupMax, maxModelLen);
  }

  /** In the syntax of {@link EngineOption#SPECULATIVE_CONFIG}. */
  @Override
  public String toString() {
    return "{\"" + METHOD + "\": \"ngram\", \"" + TOKENS + "\": " + numSpeculativeTokens
        + ", \"" + MIN + "\": " + promptLookupMin
        + ", \"" + MAX + "\": " + promptLookupMax + "}";
  }
}
