package dev.tacho.engine;

import java.util.Set;

/** Between text and token ids, as the engine needs it. Methods are for any thread; a stream is for one. */
interface TextCodec extends AutoCloseable {
  /** Ids of a text as a prompt, with the special tokens that the model wants. */
  int[] encode(String text);

  /** Ids of a piece of text, without special tokens around it. */
  int[] encodePiece(String text);

  /** Text of ids, special tokens left out. */
  String decode(int[] ids);

  /** A token's own text; what is no whole character shows as U+FFFD. */
  String tokenText(int id);

  /** Tokens of the vocabulary. */
  int vocabSize();

  /** End-of-text ids. */
  Set<Integer> eosTokenIds();

  /** A stream of text that goes on from a prompt. */
  TextStream stream(int[] promptIds);

  @Override
  void close();

  /** Turns the tokens of one sequence into text, a token at a time. */
  interface TextStream {
    /** The text that is complete with this token; never a part of a character. */
    String append(int id);

    /** What is left at the end; bytes that are no character as U+FFFD. */
    String flush();
  }
}
