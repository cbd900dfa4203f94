package dev.tacho.engine.parallel;

/**
 * One member's part of the items of an operator, piece by piece. Members that wait for the same memory do not get the
 * same part of its speed, so with equal shares one would wait for the other at the next barrier. The first half of a
 * member's equal share is its own; the second halves of all are cut into pieces that whoever comes first takes, each
 * half as long as the one before but for the last, so that all end within a short piece of each other.
 *
 * <pre>
 *   share.begin(items, 1);
 *   while (share.next()) { work on [share.first(), share.end()) }
 *   member.barrier();
 * </pre>
 *
 * <p>One cut share between two barriers. How often {@link #next} is true, summed over the members, depends on the items
 * and the members alone; whose a piece is does not. Used by the member's own thread; allocates nothing.
 */
public final class WorkShare {
  /** Pieces of the second half of a member's equal share. */
  private static final int PIECES = 8;

  private final TeamMember member;
  private int items;
  private int leastPiece;
  private boolean cut;
  private boolean begun;
  private int first;
  private int end;

  /** The share of a member. */
  public WorkShare(TeamMember member) {
    this.member = member;
  }

  /**
   * Begins with an operator.
   *
   * @param count its items
   * @param least items of a piece, if the half has as many; the last piece may have up to twice as many and one
   */
  public void begin(int count, int least) {
    items = count;
    leastPiece = least;
    cut = member.size() > 1;
    begun = false;
  }

  /** Takes the next range, which has an item at least; false if nothing is left. */
  public boolean next() {
    if (!begun) {
      begun = true;
      first = member.begin(items);
      end = cut ? middle(member.index()) : member.end(items);
      if (first < end) {
        return true;
      }
    }
    while (cut) {
      int piece = member.claim();
      int number = piece / member.size();
      if (number >= PIECES) {
        cut = false;
      } else {
        int owner = piece % member.size();
        first = border(owner, number);
        end = border(owner, number + 1);
        if (first < end) {
          return true;
        }
      }
    }
    return false;
  }

  /** First item of the range. */
  public int first() {
    return first;
  }

  /** The item behind the last one of the range. */
  public int end() {
    return end;
  }

  /** Where the second half of a member's equal share begins. */
  private int middle(int index) {
    int from = member.share(items, index);
    return from + (member.share(items, index + 1) - from + 1) / 2;
  }

  /** Where a piece of a second half begins; the last ends with the half. */
  private int border(int index, int piece) {
    int last = member.share(items, index + 1);
    int middle = middle(index);
    int left = (last - middle) >> piece;
    if (piece == 0) {
      return middle;
    }
    return piece == PIECES || left < leastPiece ? last : last - left;
  }
}
