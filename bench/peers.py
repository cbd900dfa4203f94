#!/usr/bin/env python3
"""Runs Tacho and llama.cpp on the same model files, in turns, and prints the ratio of their medians.

A ratio is worth something only if nothing else ran: before each run the script waits for a second in which others used
less than 5 % of the machine, and it prints the largest share that others had during the runs (`foreign`).
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
TESTS = ["prefill", "decode", "batched_decode"]


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


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command, quiet_seconds, environment=None):
    """The command's output, and the share of the machine that others used meanwhile."""
    wait_for_quiet(quiet_seconds)
    all_before, busy_before = cpu_ticks()
    own_before = children_seconds()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    own = (children_seconds() - own_before) * TICKS
    all_after, busy_after = cpu_ticks()
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return done.stdout, max(0.0, (busy_after - busy_before - own) / max(1, all_after - all_before))


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Tacho:
    """One process a round, all tests in it."""

    name = "tacho"

    def __init__(self, options):
        self.options = options

    def round(self, model):
        o = self.options
        command = [ROOT / "scripts/tacho", "bench", "--model", model, "--threads", o.threads, "--prompt", o.prompt,
                   "--decode", o.decode, "--depth", o.depth, "--batch", f"1,{o.batch}", "--repeat", "1",
                   "--kernels", o.kernels, "--json"]
        output, foreign = run([str(word) for word in command], o.quiet, {**os.environ, "TACHO_LOG_LEVEL": "ERROR"})
        return {line["test"]: line["tokens_per_second"] for line in json_lines(output)}, foreign


class LlamaCpp:
    """llama-bench for one sequence, llama-batched-bench for several."""

    name = "llama.cpp"

    def __init__(self, options):
        self.options = options
        self.folder = Path(options.llama_cpp) / "build" / "bin"
        if not (self.folder / "llama-bench").exists():
            sys.exit(f"--llama-cpp: no build/bin/llama-bench in {options.llama_cpp}")

    def bench(self, model, *sizes):
        o = self.options
        command = [self.folder / "llama-bench", "-m", model, "-t", o.threads, "-r", 1, "-o", "json", *sizes]
        output, foreign = run([str(word) for word in command], o.quiet)
        return json.loads(output)[0]["avg_ts"], foreign

    def round(self, model):
        o = self.options
        prefill, foreign_prefill = self.bench(model, "-p", o.prompt, "-n", 0)
        decode, foreign_decode = self.bench(model, "-p", 0, "-n", o.decode, "-d", o.depth)
        command = [self.folder / "llama-batched-bench", "-m", model, "-c", o.batch * (o.depth + o.decode + 16),
                   "-b", 2048, "-ub", 512, "-npp", o.depth, "-ntg", o.decode, "-npl", o.batch, "-t", o.threads,
                   "-tb", o.threads, "--output-format", "jsonl"]
        output, foreign_batch = run([str(word) for word in command], o.quiet)
        figures = {"prefill": prefill, "decode": decode, "batched_decode": json_lines(output)[-1]["speed_tg"]}
        return figures, max(foreign_prefill, foreign_decode, foreign_batch)


def cpu_name():
    text = Path("/proc/cpuinfo").read_text(encoding="ascii")
    name = re.search(r"model name\s*: (.*)", text)
    flags = set(re.search(r"flags\s*: (.*)", text).group(1).split())
    best = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8") if flag in flags]
    return f"{name.group(1) if name else '?'} ({' '.join(best)}), {os.cpu_count()} CPUs"


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench peers", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, metavar="FILE", help="GGUF files")
    parser.add_argument("--llama-cpp", required=True, metavar="DIR", help="a folder with build/bin/llama-bench")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5, help="runs of each engine, in turns (default 5)")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prefill test (default 512)")
    parser.add_argument("--decode", type=int, default=64, help="tokens to decode (default 64)")
    parser.add_argument("--depth", type=int, default=64, help="tokens in the cache before (default 64)")
    parser.add_argument("--batch", type=int, default=8, help="sequences of the batched test (default 8)")
    parser.add_argument("--kernels", default="auto", help="Tacho's kernels (default auto)")
    parser.add_argument("--quiet", type=float, default=60, metavar="SECONDS", help="wait for a quiet machine so long")
    parser.add_argument("--json", action="store_true", help="JSON lines with every run instead of the table")
    options = parser.parse_args()
    if not 2 <= options.batch <= 128:
        parser.error(f"--batch must be 2 to 128, is {options.batch}")
    for model in options.models:
        if not model.is_file():
            parser.error(f"no such file: {model}")
    return options


def main():
    options = parse()
    engines = [Tacho(options), LlamaCpp(options)]
    if not options.json:
        commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True,
                                text=True, check=False).stdout.strip()
        print(f"{cpu_name()}; {options.threads} threads; commit {commit}; medians of {options.rounds} rounds; "
              f"tokens/s\n")
        print("| model | test | tacho | llama.cpp | ratio | foreign |\n|---|---|---|---|---|---|")
    for model in options.models:
        runs = {engine.name: {test: [] for test in TESTS} for engine in engines}
        worst = 0.0
        for number in range(options.rounds):
            for engine in engines:
                print(f"\r\033[K{model.name}: round {number + 1} of {options.rounds}, {engine.name}", end="",
                      file=sys.stderr, flush=True)
                figures, foreign = engine.round(model)
                worst = max(worst, foreign)
                for test in TESTS:
                    runs[engine.name][test].append(figures[test])
        print("\r\033[K", end="", file=sys.stderr, flush=True)
        for test in TESTS:
            ours, theirs = (statistics.median(runs[engine.name][test]) for engine in engines)
            if options.json:
                print(json.dumps({"model": model.name, "test": test, "threads": options.threads,
                                  "ratio": round(ours / theirs, 3), "foreign": round(worst, 3),
                                  **{engine.name: runs[engine.name][test] for engine in engines}}), flush=True)
            else:
                print(f"| {model.name} | {test} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} | {worst:.3f} |",
                      flush=True)


if __name__ == "__main__":
    main()
