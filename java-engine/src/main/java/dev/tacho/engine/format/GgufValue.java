package dev.tacho.engine.format;

/**
 * Where a metadata value lies in the file. Values stay in the mapping until somebody asks for them, so a large
 * vocabulary costs nothing here.
 *
 * @param type the value's type
 * @param elementType type of the elements if this is an array, else the same as {@code type}
 * @param offset first byte of the value, or of the array's first element, in the file
 * @param bytes from there to the end of the value
 * @param count number of elements, 1 if this is not an array
 */
record GgufValue(GgufValueType type, GgufValueType elementType, long offset, long bytes, long count) {
  boolean isArray() {
    return type == GgufValueType.ARRAY;
  }

  /** How a message calls the value. */
  String describe() {
    return isArray() ? "an array of " + count + " " + elementType.label() : type.label();
  }
}
