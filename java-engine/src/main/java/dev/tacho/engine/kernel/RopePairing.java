package dev.tacho.engine.kernel;

/** Which two elements of a head turn together. */
public enum RopePairing {
  /** (2i, 2i + 1): GGUF's Llama. */
  ADJACENT,
  /** (i, i + ropeDim / 2): NeoX and Hugging Face. */
  HALVES
}
