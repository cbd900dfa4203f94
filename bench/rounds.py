"""What rounds say apart from rates: how far others disturbed them, and how fast memory was.

A round's figures are a dict from a name to a figure, as the engines give it. Some machines are given memory at more
than one speed, which change by themselves: rounds are of one speed as long as the fastest is within `ONE_SPEED` of the
slowest.
"""

import json
import statistics

ONE_SPEED = 1.25


def foreign(figures):
    """The largest share of the machine that others had in a round."""
    return max((figure["foreign"] for figure in figures.values() if isinstance(figure, dict)), default=0.0)


def readings(figures):
    """GB/s of memory before and behind each test of a round; none where memory does not bound the tests."""
    return [speed for figure in figures.values() if isinstance(figure, dict)
            for speed in figure.get("memory_gb_per_second", ())]


def memory_speed(figures):
    """GB/s of memory in a round, or None."""
    found = readings(figures)
    return statistics.median(found) if found else None


def steady(figures, limit):
    """Whether memory was read in a round, and its fastest reading is at most this share above its slowest."""
    found = readings(figures)
    return bool(found) and max(found) <= (1 + limit) * min(found)


def by_speed(rounds):
    """Pairs of a speed of memory (GB/s, the median) and the rounds measured at it, the slowest first."""
    groups = []
    for figures in sorted((each for each in rounds if readings(each)), key=memory_speed):
        if not groups or memory_speed(figures) > ONE_SPEED * memory_speed(groups[-1][0]):
            groups.append([])
        groups[-1].append(figures)
    return [(statistics.median(map(memory_speed, group)), group) for group in groups]


def dram_share(rounds, name):
    """What this decode of ours read a second, as a part of the speed of memory in the same round; the median."""
    return statistics.median(
        figures[name]["tokens_per_second"] * figures[name]["bytes_per_token"] / (memory_speed(figures) * 1e9)
        for figures in rounds)


def read(file):
    """The header of a file of results, or None, and its rounds by key; without a line that was cut off.

    Of a round that was measured again the last line counts.
    """
    header, found = None, {}
    for text in file.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(text)
        except json.JSONDecodeError:
            continue
        if not isinstance(record, dict):
            continue
        if "machine" in record:
            header = record
        else:
            found[record["row"], record["subject"], record["round"]] = record["figures"]
    return header, found
