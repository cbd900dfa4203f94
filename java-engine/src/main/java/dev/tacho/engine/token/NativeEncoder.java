package dev.tacho.engine.token;

import ai.djl.huggingface.tokenizers.jni.TokenizersLibrary;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * A tokenizer inside the native library, owned: close frees it. Any number of threads may encode at once; close waits
 * for them, and encoding after close is an error instead of a read of freed memory.
 */
final class NativeEncoder implements AutoCloseable {
  private final TokenizersLibrary library;
  private final ReadWriteLock lifetime = new ReentrantReadWriteLock();
  private long handle;

  /**
   * Makes a tokenizer.
   *
   * @param tokenizerJson a document as the library reads it
   * @throws RuntimeException if the library refuses it, with its words
   */
  NativeEncoder(String tokenizerJson) {
    this.library = TokenizersLibraryLoader.load();
    this.handle = library.createTokenizerFromString(tokenizerJson);
  }

  /** The ids of a text without lone surrogates, no begin or end token added. */
  int[] encode(String text) {
    lifetime.readLock().lock();
    try {
      if (handle == 0) {
        throw new IllegalStateException("the tokenizer is closed");
      }
      long encoding = library.encode(handle, text, false);
      try {
        long[] wide = library.getTokenIds(encoding);
        int[] ids = new int[wide.length];
        for (int i = 0; i < ids.length; i++) {
          ids[i] = Math.toIntExact(wide[i]);
        }
        return ids;
      } finally {
        library.deleteEncoding(encoding);
      }
    } finally {
      lifetime.readLock().unlock();
    }
  }

  @Override
  public void close() {
    lifetime.writeLock().lock();
    try {
      if (handle != 0) {
        library.deleteTokenizer(handle);
        handle = 0;
      }
    } finally {
      lifetime.writeLock().unlock();
    }
  }
}
