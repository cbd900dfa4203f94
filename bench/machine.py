"""What the measuring scripts share: waiting for a quiet machine, its memory's speed, running a command, its name."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
MEMORY_LOOP = ROOT / "build" / "native" / "tacho_memory_bandwidth"


def cpu_ticks():
    """All ticks of the machine since boot, and the busy ones."""
    with open("/proc/stat", encoding="ascii") as file:
        values = [int(word) for word in file.readline().split()[1:9]]
    return sum(values), sum(values) - values[3] - values[4]


def wait_for_quiet(seconds):
    """Waits until others leave the machine alone; gives up after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        all_before, busy_before = cpu_ticks()
        time.sleep(1)
        all_after, busy_after = cpu_ticks()
        if (busy_after - busy_before) < 0.05 * (all_after - all_before):
            return


class Foreign:
    """The share of the machine that others used between the beginning and the end of a `with`."""

    def __init__(self, own_seconds):
        """own_seconds: a function that gives the CPU seconds of the processes that are measured."""
        self.own_seconds = own_seconds
        self.share = 0.0

    def __enter__(self):
        self.all_before, self.busy_before = cpu_ticks()
        self.own_before = self.own_seconds()
        return self

    def __exit__(self, *_):
        own = (self.own_seconds() - self.own_before) * TICKS
        all_after, busy_after = cpu_ticks()
        self.share = max(0.0, (busy_after - self.busy_before - own) / max(1, all_after - self.all_before))


def children_seconds():
    """CPU seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def process_seconds(pid):
    """CPU seconds of a process that runs."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def read_memory(threads):
    """GB/s that so many threads which only read get from memory now; takes some 0.4 s."""
    if not MEMORY_LOOP.exists():
        sys.exit(f"{MEMORY_LOOP} is not built: scripts/bench builds it")
    done = subprocess.run([MEMORY_LOOP, str(threads)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed: {MEMORY_LOOP} {threads}\n{done.stderr}")
    return float(done.stdout)


def run(command, quiet_seconds, environment=None, memory_threads=0):
    """What the command printed (stdout, stderr), and a dict of how the machine was.

    In it: `foreign`, the share of the machine that others used meanwhile, and, if memory_threads is not 0,
    `memory_gb_per_second`, what so many threads which only read got from memory right before and right behind.
    """
    command = [str(word) for word in command]
    wait_for_quiet(quiet_seconds)
    before = read_memory(memory_threads) if memory_threads else None
    with Foreign(children_seconds) as foreign:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment,
                              errors="replace", check=False)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{done.stderr[-2000:]}")
    state = {"foreign": foreign.share}
    if memory_threads:
        state["memory_gb_per_second"] = [before, read_memory(memory_threads)]
    return done, state


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def progress(text=""):
    """Shows a line in place of the one before, on stderr."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def line(cells):
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"


def head(columns):
    """The head of a table."""
    return line(columns) + "\n" + "|---" * len(columns) + "|"


def machine():
    """Processor with what matters to kernels, and the commit."""
    text = Path("/proc/cpuinfo").read_text(encoding="ascii")
    name = re.search(r"model name\s*: (.*)", text)
    flags = set(re.search(r"flags\s*: (.*)", text).group(1).split())
    best = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8") if flag in flags]
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    return f"{name.group(1) if name else '?'} ({' '.join(best)}), {os.cpu_count()} CPUs; commit {commit}"
