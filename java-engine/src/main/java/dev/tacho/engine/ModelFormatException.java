package dev.tacho.engine;

/** A model file that is not what it says it is. */
public final class ModelFormatException extends EngineException {
  private static final long serialVersionUID = 1L;

  private final String file;
  private final long offset;
  private final String field;
  private final String expected;
  private final String found;

  /**
   * @param file the file's path
   * @param offset byte offset of the field in the file, -1 if the fault has no single place
   * @param field the field in the format's own words, e.g. {@code "tensor count"} or a metadata key
   * @param expected what would have been valid, with the limit
   * @param found what is there
   */
  public ModelFormatException(String file, long offset, String field, String expected, String found) {
    super(
        file
            + (offset >= 0 ? " at byte " + offset : "")
            + (": " + field + ": expected " + expected + ", found " + found));
    this.file = file;
    this.offset = offset;
    this.field = field;
    this.expected = expected;
    this.found = found;
  }

  /** The file's path. */
  public String file() {
    return file;
  }

  /** Byte offset of the field in the file, -1 if the fault has no single place. */
  public long offset() {
    return offset;
  }

  /** The field in the format's own words. */
  public String field() {
    return field;
  }

  /** What would have been valid. */
  public String expected() {
    return expected;
  }

  /** What is there. */
  public String found() {
    return found;
  }
}
