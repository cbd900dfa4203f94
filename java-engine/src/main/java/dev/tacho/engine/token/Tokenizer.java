package dev.tacho.engine.token;

import dev.tacho.engine.EngineException;
import dev.tacho.engine.InvalidRequestException;
import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.format.GgufFile;
import java.util.Arrays;
import java.util.Collections;
import java.util.OptionalInt;
import java.util.Set;

/**
 * The tokenizer of a model: text to token ids and back, with the same ids as the model's own. Built from the vocabulary
 * in a GGUF file, which may be closed afterwards.
 *
 * <p>Any thread may use it. {@link #of} and {@link #encode} call native code for longer than a virtual thread should
 * pin its carrier (over 50 µs but for the shortest texts): call them on platform threads. Decoding is plain Java.
 * {@link #close()} frees the native part and waits for encoding that is under way; afterwards {@link #encode} throws
 * {@link IllegalStateException}, decoding goes on working.
 */
public final class Tokenizer implements AutoCloseable {
  private static final int[] NO_IDS = {};

  /**
   * Longest run of letters, digits, spaces or signs in a text that is split by regular expressions. The expressions go
   * back over a run a few times; after 10 million steps in one match the library ends the process.
   */
  static final int MAX_RUN_CHARS = 1_000_000;

  private final NativeEncoder encoder;
  private final TokenTable table;
  private final boolean splitsText;
  private final OptionalInt bos;
  private final int[] before;
  private final int[] after;
  private final Set<Integer> endOfGeneration;

  private Tokenizer(NativeEncoder encoder, Vocabulary vocabulary) {
    this.encoder = encoder;
    this.table = TokenTable.of(vocabulary);
    this.splitsText = vocabulary.kind() == Vocabulary.Kind.BYTE_LEVEL;
    this.bos = vocabulary.bos();
    this.before = vocabulary.addsBos(addsBosByDefault(vocabulary)) ? idsOf(bos) : NO_IDS;
    this.after = vocabulary.addsEos() ? idsOf(vocabulary.eos()) : NO_IDS;
    this.endOfGeneration = Collections.unmodifiableSet(vocabulary.endOfGeneration());
  }

  /**
   * Begins to load the native library that encodes text, on a thread of its own; whoever makes the first tokenizer then
   * waits for the rest of it alone. A failure is left for that one. Returns at once; any thread, any number of times.
   */
  public static void preload() {
    Thread.ofPlatform()
        .name("tacho-tokenizers-library")
        .daemon()
        .start(
            () -> {
              try {
                TokenizersLibraryLoader.load();
              } catch (UnsupportedException unheard) {
                // Whoever makes a tokenizer meets it again.
              }
            });
  }

  /**
   * Builds the tokenizer of a model file.
   *
   * @throws ModelFormatException if the vocabulary is missing, contradicts itself, or the library refuses it
   * @throws UnsupportedException if the vocabulary is of a kind, or splits text by a rule, that is not known here, or
   *     there is no native library for this platform
   */
  public static Tokenizer of(GgufFile file) {
    Vocabulary vocabulary = Vocabulary.read(file);
    NativeEncoder encoder = encoderOf(vocabulary);
    boolean built = false;
    try {
      Tokenizer tokenizer = new Tokenizer(encoder, vocabulary);
      built = true;
      return tokenizer;
    } finally {
      if (!built) {
        encoder.close();
      }
    }
  }

  private static NativeEncoder encoderOf(Vocabulary vocabulary) {
    String json = TokenizerJson.of(vocabulary);
    try {
      return new NativeEncoder(json);
    } catch (EngineException e) {
      throw e;
    } catch (RuntimeException e) {
      ModelFormatException fault =
          new ModelFormatException(
              vocabulary.fileName(),
              -1,
              "tokenizer.ggml",
              "a vocabulary that the tokenizers library can load",
              String.valueOf(e.getMessage()));
      fault.initCause(e);
      throw fault;
    }
  }

  private static boolean addsBosByDefault(Vocabulary vocabulary) {
    return switch (vocabulary.kind()) {
      case SENTENCE_PIECE -> true;
      case BYTE_LEVEL -> vocabulary.preTokenizer().addsBos();
    };
  }

  private static int[] idsOf(OptionalInt id) {
    return id.isPresent() ? new int[] {id.getAsInt()} : NO_IDS;
  }

  /**
   * The ids of a text. Special tokens written in the text are recognised.
   *
   * @param text any text; lone surrogates count as U+FFFD
   * @param addSpecialTokens whether to add the begin and end tokens that the model expects
   * @throws InvalidRequestException if the library can't encode the text, with its words, or if a byte-level vocabulary
   *     would have to split a run of over a million letters, digits, spaces or other signs
   * @throws IllegalStateException after {@link #close()}
   */
  public int[] encode(String text, boolean addSpecialTokens) {
    if (splitsText && text.length() > MAX_RUN_CHARS) {
      requireShortRuns(text);
    }
    int[] ids;
    try {
      ids = text.isEmpty() ? NO_IDS : encoder.encode(wellFormed(text));
    } catch (IllegalStateException e) {
      throw e;
    } catch (RuntimeException e) {
      InvalidRequestException refusal =
          new InvalidRequestException("prompt", String.valueOf(e.getMessage()));
      refusal.initCause(e);
      throw refusal;
    }
    if (!addSpecialTokens || (before.length == 0 && after.length == 0)) {
      return ids;
    }
    int[] all = Arrays.copyOf(before, before.length + ids.length + after.length);
    System.arraycopy(ids, 0, all, before.length, ids.length);
    System.arraycopy(after, 0, all, before.length + ids.length, after.length);
    return all;
  }

  private static void requireShortRuns(String text) {
    int previous = -1;
    int start = 0;
    for (int i = 0; i < text.length(); i += Character.charCount(text.codePointAt(i))) {
      int kind = kindOf(text.codePointAt(i));
      if (kind != previous) {
        previous = kind;
        start = i;
      } else if (i - start >= MAX_RUN_CHARS) {
        throw new InvalidRequestException(
            "prompt",
            "more than "
                + MAX_RUN_CHARS
                + " characters of one kind in a row, from character "
                + start
                + " on");
      }
    }
  }

  /** Kinds as the expressions tell them apart, marks with the letters. */
  private static int kindOf(int codePoint) {
    if (Character.isWhitespace(codePoint) || Character.isSpaceChar(codePoint)) {
      return 0;
    }
    if (Character.isDigit(codePoint)) {
      return 1;
    }
    return Character.isLetter(codePoint)
            || Character.getType(codePoint) == Character.NON_SPACING_MARK
        ? 2
        : 3;
  }

  /** JNI has no strings with lone surrogates. */
  private static String wellFormed(String text) {
    StringBuilder repaired = null;
    for (int i = 0; i < text.length(); i++) {
      char character = text.charAt(i);
      if (!Character.isSurrogate(character)) {
        continue;
      }
      if (Character.isHighSurrogate(character)
          && i + 1 < text.length()
          && Character.isLowSurrogate(text.charAt(i + 1))) {
        i++;
        continue;
      }
      repaired = repaired == null ? new StringBuilder(text) : repaired;
      repaired.setCharAt(i, '\ufffd');
    }
    return repaired == null ? text : repaired.toString();
  }

  /**
   * The text of ids.
   *
   * @param ids tokens; those outside the vocabulary have no text
   * @param skipSpecialTokens whether to leave out marks such as begin and end of text
   * @return the text, with U+FFFD for bytes that are not UTF-8
   */
  public String decode(int[] ids, boolean skipSpecialTokens) {
    TextAssembler assembler = new TextAssembler(table, true);
    for (int id : ids) {
      if (!skipSpecialTokens || !table.isSpecial(id)) {
        assembler.append(id);
      }
    }
    return assembler.finish();
  }

  /** Number of tokens; ids are below it. A model's output can be wider. */
  public int vocabSize() {
    return table.size();
  }

  /** The begin-of-text token, if the vocabulary has one; whether a text gets it is another matter. */
  public OptionalInt bosTokenId() {
    return bos;
  }

  /** The tokens that end a generation: end of text, of turn, of message. Unmodifiable. */
  public Set<Integer> eosTokenIds() {
    return endOfGeneration;
  }

  /** Whether the token is a mark, such as begin and end of text, that output leaves out. */
  public boolean isSpecial(int id) {
    return table.isSpecial(id);
  }

  /** A token's own text, with U+FFFD for bytes that make no character alone; empty outside the vocabulary. */
  public String tokenText(int id) {
    TextAssembler assembler = new TextAssembler(table, false);
    assembler.append(id);
    return assembler.finish();
  }

  /** A token's own bytes, a copy; empty outside the vocabulary. */
  public byte[] tokenBytes(int id) {
    return id < 0 || id >= table.size() ? new byte[0] : table.bytes(id);
  }

  /**
   * Begins the text of a sequence.
   *
   * @param promptIds what precedes: decides whether the first token's leading space shows; not part of the text
   */
  public IncrementalDetokenizer detokenizer(int[] promptIds) {
    return new IncrementalDetokenizer(table, promptIds);
  }

  /** Frees the native part. Again: nothing. */
  @Override
  public void close() {
    encoder.close();
  }
}
