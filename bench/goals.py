"""The floors of the speed table, what the rounds of a run say of each, and the tables that show it.

Results are a dict from (row, subject) to the figures of each round, as the scripts that measure give them.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import peers
import serve
import start
from engines import BATCHED_DECODE, DECODE, PREFILL
from machine import head, line
from ratios import ratio
from rounds import by_speed, memory_speed

SHAPES = ("1b", "125m")
TYPES = ("q4_0", "q8_0", "q4_k_m", "bf16", "f16")
# What the other JVM engines can read.
VECTOR_TYPES = ("q8_0", "q4_0")
STREAMS = "streams"
CONTEXT = "context"
VECTOR = {"vector_prefill": PREFILL, "vector_decode": DECODE}
START = "start"
MEMORY = "memory"
ROWS = (PREFILL, DECODE, BATCHED_DECODE, CONTEXT, *VECTOR, STREAMS, START, MEMORY)
MEMORY_BOUND = (DECODE, BATCHED_DECODE, CONTEXT, "vector_decode")
STREAMED_MODEL = "125m-q8_0"
STARTED_MODEL = "1b-q8_0"
LLAMA_CPP = "llama.cpp"
NEAR, FAR = "near", "far"
MB = 1e6


@dataclass(frozen=True)
class Floor:
    """A limit that must be held.

    row, subject: whose figures; goal: the words of the table's row.
    read: from the figures of each round to the value and what more there is to say of it.
    at_most: the value must not be above the limit; otherwise not below.
    """

    row: str
    subject: str
    goal: str
    limit: float
    read: Callable
    at_most: bool = False


@dataclass(frozen=True)
class Finding:
    """What a run says of a floor; the value is None if it was not measured.

    speeds: pairs of a speed of memory (GB/s) and what its rounds alone say, if the rounds are of more than one.
    """

    floor: Floor
    value: float | None
    more: str = ""
    rounds: int = 0
    speeds: tuple = ()

    @property
    def held(self):
        if self.value is None:
            return False
        return self.value <= self.floor.limit if self.floor.at_most else self.value >= self.floor.limit

    @property
    def margin(self):
        """Above 1 where the floor is held, the further the better."""
        if self.value is None:
            return 0.0
        value = max(self.value, 1e-9)
        return self.floor.limit / value if self.floor.at_most else value / self.floor.limit

    @property
    def verdict(self):
        return "not measured" if self.value is None else "held" if self.held else "**missed**"


def compared(found):
    return found.paired, f"{found.lowest:.2f} to {found.highest:.2f}, of medians {found.of_medians:.2f}"


def to_llama_cpp(rounds):
    return compared(ratio(peers.rates(rounds, "tacho"), peers.rates(rounds, LLAMA_CPP)))


def to_better_jvm_engine(rounds):
    """To the faster one of each round."""
    own = next(name for name in rounds[0] if name.startswith("tacho"))
    best = [max(figure["tokens_per_second"] for name, figure in figures.items() if name != own) for figures in rounds]
    return compared(ratio(peers.rates(rounds, own), best))


def streamed(rounds):
    best = serve.best_other(rounds)
    value, more = compared(ratio(serve.column(rounds, serve.OURS, "tokens_per_second"),
                                 serve.column(rounds, best, "tokens_per_second")))
    return value, f"{more}; to {best}"


def first_token(rounds):
    """Theirs to ours, so that more is better."""
    best = serve.best_other(rounds)
    value, more = compared(ratio(serve.column(rounds, best, "ttft_p95"),
                                 serve.column(rounds, serve.OURS, "ttft_p95")))
    return value, f"{more}; of {best}"


def deep(rounds):
    """How much longer a token takes behind a long context, to the time in which memory gives the bytes more."""
    values = []
    for figures in rounds:
        near, far = figures[NEAR], figures[FAR]
        rate = memory_speed(figures) * 1e9
        longer = 1 / far["tokens_per_second"] - 1 / near["tokens_per_second"]
        values.append(longer * rate / (far["attention_bytes_per_token"] - near["attention_bytes_per_token"]))
    return statistics.median(values), f"{min(values):.2f} to {max(values):.2f}"


def started(name):
    return lambda rounds: compared(ratio([seconds[name] for seconds in rounds],
                                         [seconds[start.LLAMA_CPP] for seconds in rounds]))


def floors():
    found = []

    def each(row, goal, limits, read):
        for shape in SHAPES:
            found.extend(Floor(row, f"{shape}-{kind}", goal, limit, read) for kind, limit in limits.items())

    each(DECODE, "decode, one sequence, to llama.cpp", dict.fromkeys(("q4_0", "q8_0", "q4_k_m", "bf16"), 1.1),
         to_llama_cpp)
    each(PREFILL, "prefill, quantised, to llama.cpp", {"q4_0": 1.5, "q4_k_m": 1.6, "q8_0": 1.5}, to_llama_cpp)
    each(PREFILL, "prefill, BF16 and F16, to llama.cpp", {"bf16": 1.3, "f16": 1.0}, to_llama_cpp)
    each(BATCHED_DECODE, "8 sequences decoding together, to llama.cpp",
         dict.fromkeys(("q8_0", "q4_0", "q4_k_m"), 1.8), to_llama_cpp)
    found.append(Floor(STREAMS, STREAMED_MODEL, "streams over HTTP, output tokens/s to llama-server's best", 1.5,
                       streamed))
    found.append(Floor(STREAMS, STREAMED_MODEL, "streams over HTTP, TTFT p95, theirs to ours", 1.0, first_token))
    found.extend(Floor(CONTEXT, f"{shape}-q8_0", "decode at a long context, more time to that of more KV bytes", 2.0,
                       deep, at_most=True) for shape in SHAPES)
    for row, limit in zip(VECTOR, (2.0, 1.1)):
        each(row, f"Vector API provider, {VECTOR[row]}, to the better JVM engine", dict.fromkeys(VECTOR_TYPES, limit),
             to_better_jvm_engine)
    for name, words in ((start.OURS, "packed anew"), (start.OURS_KEPT, "packed weights kept")):
        found.append(Floor(START, STARTED_MODEL, f"start to the first token, {words}, to llama.cpp", 2.0,
                           started(name), at_most=True))
    for words, excess in (("RssAnon less weights and KV cache, MB", start.anonymous_excess),
                          ("VmHWM less 1.1 x file and KV cache, MB", start.loading_excess)):
        found.append(Floor(MEMORY, STARTED_MODEL, words, 300.0,
                           lambda rounds, excess=excess: (max(excess(used) for used in rounds) / MB, ""),
                           at_most=True))
    return found


def shape_of(subject):
    return subject.partition("-")[0]


def finding_of(floor, rounds):
    """What these rounds say of a floor; all of them are judged together."""
    if not rounds:
        return Finding(floor, None)
    groups = by_speed(rounds)
    speeds = tuple((speed, finding_of(floor, group)) for speed, group in groups) if len(groups) > 1 else ()
    return Finding(floor, *floor.read(rounds), len(rounds), speeds)


def judge(results, rows=ROWS, shapes=SHAPES):
    """A finding for each floor of these rows and shapes."""
    return [finding_of(floor, results.get((floor.row, floor.subject))) for floor in floors()
            if floor.row in rows and shape_of(floor.subject) in shapes]


def number(value):
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"


def summary(findings, command):
    """A line for each row of the goals: what is nearest to its floor, or furthest below."""
    lines = [head(["goal", "least of it", "floor", "", "command"])]
    goals = {}
    for finding in findings:
        goals.setdefault(finding.floor.goal, []).append(finding)
    for goal, members in goals.items():
        least = min(members, key=lambda finding: finding.margin)
        missed = [f"{finding.floor.subject} {finding.verdict}" for finding in members if not finding.held]
        floor = least.floor
        lines.append(line([goal, f"{number(least.value)} ({floor.subject})",
                           f"{'≤' if floor.at_most else '≥'} {number(floor.limit)}", ", ".join(missed) or "held",
                           f"`{command} --only {floor.row}`"]))
    return "\n".join(lines)


def details(findings):
    """A line for each floor, and for each speed of memory that its rounds are of if they are of several."""
    lines = [head(["goal", "of", "value", "floor", "", "rounds", "of each round"])]
    for finding in findings:
        floor = finding.floor
        lines.append(line([floor.goal, floor.subject, number(finding.value), number(floor.limit), finding.verdict,
                           str(finding.rounds), finding.more]))
        lines += [line([floor.goal, f"{floor.subject} at {speed:.0f} GB/s", number(part.value), number(floor.limit),
                        part.verdict, str(part.rounds), part.more]) for speed, part in finding.speeds]
    return "\n".join(lines)


def measured(results):
    """Tokens a second of the engines, a table for each set of engines beside each other."""
    tables = {}
    for (row, subject), rounds in results.items():
        if row in (STREAMS, START, MEMORY):
            continue
        names = tuple(sorted(rounds[0], key=lambda name: (not name.startswith("tacho"), name)))
        names = (NEAR, FAR) if row == CONTEXT else names
        tables.setdefault(names, []).append(line([subject, row, *peers.cells(names, rounds)]))
    return "\n\n".join("\n".join([head(peers.columns(names)), *lines]) for names, lines in tables.items())
