package dev.tacho.engine.token;

import org.jspecify.annotations.Nullable;

/** What a vocabulary says a token is; the ordinal is the number in {@code tokenizer.ggml.token_type}. */
enum TokenType {
  UNDEFINED,
  /** A piece of text. */
  NORMAL,
  /** Stands for what cannot be encoded. */
  UNKNOWN,
  /** A mark such as begin and end of text: recognised in a prompt, left out of output. */
  CONTROL,
  /** Text that is recognised as a whole before anything is split, and shown. */
  USER_DEFINED,
  UNUSED,
  /** A byte of UTF-8, written {@code <0xNN>}, for characters that have no token. */
  BYTE;

  private static final TokenType[] BY_ID = values();

  /** The type with this number, null if there is none. */
  static @Nullable TokenType ofId(int id) {
    return id >= 0 && id < BY_ID.length ? BY_ID[id] : null;
  }

  /** Whether tokens of this type are matched in the text before it is split. */
  boolean isMatchedWhole() {
    return this == CONTROL || this == USER_DEFINED || this == UNKNOWN;
  }

  /** Whether the token is a mark and not text. */
  boolean isSpecial() {
    return this == CONTROL || this == UNKNOWN;
  }
}
