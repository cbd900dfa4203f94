package dev.tacho.engine.kv;

/**
 * What one sequence has of the KV cache: a block table for each cache group, and the hashes of its full blocks. Engine
 * thread only.
 */
public final class SequenceBlocks {
  private final PrefixHashes hashes;
  private BlockTable first = new BlockTable();
  // Those of the groups behind the first.
  private BlockTable[] others = {};
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
    return 1 + others.length;
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
    return group == 0 ? first : others[group - 1];
  }

  /** Makes an empty table for each of so many groups; the sequence has no blocks yet. */
  void open(int numGroups) {
    if (numGroups == numGroups()) {
      return;
    }
    first = new BlockTable();
    others = new BlockTable[numGroups - 1];
    for (int i = 0; i < others.length; i++) {
      others[i] = new BlockTable();
    }
  }

  /** Makes room for blocks and, if there are any, for their hashes. */
  public void reserve(int numBlocks) {
    first.reserve(numBlocks);
    for (BlockTable table : others) {
      table.reserve(numBlocks);
    }
    if (hashes.size() > 0) {
      hashes.reserve(numBlocks);
    }
  }

  int lostPrefixBlocks() {
    return lostPrefixBlocks;
  }

  void setLostPrefixBlocks(int blocks) {
    lostPrefixBlocks = blocks;
  }
}
