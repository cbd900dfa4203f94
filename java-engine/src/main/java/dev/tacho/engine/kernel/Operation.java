package dev.tacho.engine.kernel;

/** The operations of {@link Kernels}; each has its own counter line a worker. */
public enum Operation {
  /** {@link Kernels#weightPack}. */
  WEIGHT_PACK,
  /** {@link Kernels#embeddingLookup}. */
  EMBEDDING_LOOKUP,
  /** {@link Kernels#activationPack}. */
  ACTIVATION_PACK,
  /** {@link Kernels#matmul}. */
  MATMUL,
  /** {@link Kernels#rmsNorm}. */
  RMS_NORM,
  /** {@link Kernels#rope}. */
  ROPE,
  /** {@link Kernels#kvWrite}. */
  KV_WRITE,
  /** {@link Kernels#attention}. */
  ATTENTION,
  /** {@link Kernels#kvCopyBlocks}. */
  KV_COPY_BLOCKS,
  /** {@link Kernels#siluMul}. */
  SILU_MUL
}
