package dev.tacho.engine;

import dev.tacho.engine.token.IncrementalDetokenizer;
import dev.tacho.engine.token.Tokenizer;
import java.util.Set;

/** The model's tokenizer, as the engine uses it. Owns the tokenizer. */
final class TokenizerCodec implements TextCodec {
  private final Tokenizer tokenizer;
  private final int vocabSize;

  /**
   * @param tokenizer the model's
   * @param vocabSize rows of the model's embedding table, which may be more than the tokenizer has tokens
   */
  TokenizerCodec(Tokenizer tokenizer, int vocabSize) {
    this.tokenizer = tokenizer;
    this.vocabSize = vocabSize;
  }

  @Override
  public int[] encode(String text) {
    return encode(text, true);
  }

  @Override
  public int[] encodePiece(String text) {
    return encode(text, false);
  }

  private int[] encode(String text, boolean specialTokens) {
    try {
      return tokenizer.encode(text, specialTokens);
    } catch (IllegalStateException e) {
      EngineClosedException closed = new EngineClosedException();
      closed.initCause(e);
      throw closed;
    }
  }

  @Override
  public String decode(int[] ids) {
    return tokenizer.decode(ids, true);
  }

  @Override
  public String tokenText(int id) {
    return tokenizer.tokenText(id);
  }

  @Override
  public int vocabSize() {
    return vocabSize;
  }

  @Override
  public Set<Integer> eosTokenIds() {
    return tokenizer.eosTokenIds();
  }

  @Override
  public TextStream stream(int[] promptIds) {
    IncrementalDetokenizer detokenizer = tokenizer.detokenizer(promptIds);
    return new TextStream() {
      @Override
      public String append(int id) {
        return detokenizer.append(id);
      }

      @Override
      public String flush() {
        return detokenizer.flush();
      }
    };
  }

  @Override
  public void close() {
    tokenizer.close();
  }
}
