"""What runs in turns say of a ratio on a machine whose speed swings."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Of ours to another's.

    paired: the median of the ratios of each round, whose runs lay beside each other in time; this one is judged.
    of_medians: the ratio of the medians over all rounds.
    lowest, highest: of the ratios of each round.
    """

    paired: float
    of_medians: float
    lowest: float
    highest: float

    def __str__(self):
        return f"{self.paired:.2f} ({self.lowest:.2f} to {self.highest:.2f})"


def ratio(ours, theirs):
    """ours, theirs: figures of the same rounds in the same order, at least one."""
    if not ours or len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} rounds of ours and {len(theirs)} of theirs")
    each = [own / other for own, other in zip(ours, theirs)]
    return Ratio(statistics.median(each), statistics.median(ours) / statistics.median(theirs), min(each), max(each))
