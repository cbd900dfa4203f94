package dev.tacho.engine.kv;

/**
 * What one sequence has of the KV cache: a block table for each cache group, and the hashes of its full blocks. Engine
 * thread only.
 */
public final class SequenceBlocks {
  private final PrefixHashes hashes;
  private BlockTable[] tables = {new BlockTable()};
  // Blocks of the prefix that group 0 still knew at admission, where a window group had lost its part.
  private int lostPrefixBlocks;

  /**
   * @param hashes of the sequence
   */
  public SequenceBlocks(PrefixHashes hashes) {
    this.hashes = hashes;
  }

  /** Hashes of the full blocks. */
  public PrefixHashes hashes() {
    return hashes;
  }

  /** Cache groups. */
  public int numGroups() {
    return tables.length;
  }

  /**
   * Hashes the blocks that are full now.
   *
   * @return with how many tokens the next one is
   */
  public int extendHashes(BlockHasher hasher, int[] tokens, int length) {
    hashes.extend(hasher, tokens, length);
    return (hashes.size() + 1) * hasher.blockTokens();
  }

  /** Blocks of a cache group. */
  public BlockTable table(int group) {
    return tables[group];
  }

  /** Makes an empty table for each of so many groups; the sequence has no blocks yet. */
  void open(int numGroups) {
    if (numGroups == tables.length) {
      return;
    }
    tables = new BlockTable[numGroups];
    for (int i = 0; i < numGroups; i++) {
      tables[i] = new BlockTable();
    }
  }

  int lostPrefixBlocks() {
    return lostPrefixBlocks;
  }

  void setLostPrefixBlocks(int blocks) {
    lostPrefixBlocks = blocks;
  }
}
