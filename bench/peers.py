#!/usr/bin/env python3
"""Runs Tacho and other engines on the same model files, in turns, and prints the ratios of their medians.

A ratio is worth something only if nothing else ran: before each run the script waits for a second in which others used
less than 5 % of the machine, and it prints the largest share that others had during the runs (`foreign`).

Tacho and llama.cpp run once before they count; llama3.java has no such mode, so that its figures hold the time in which
its code is compiled.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from machine import ROOT, json_lines, machine, progress, run

LONG_DECODE = "decode_at_context"
TESTS = ["prefill", "decode", "batched_decode", LONG_DECODE]


class Tacho:
    """One process a round, all tests in it; another one for the long context."""

    def __init__(self, options, kernels, name):
        self.options = options
        self.kernels = kernels
        self.name = name

    def bench(self, model, depth, batch):
        o = self.options
        command = [ROOT / "scripts/tacho", "bench", "--model", model, "--threads", o.threads, "--prompt", o.prompt,
                   "--decode", o.decode, "--depth", depth, "--batch", batch, "--repeat", 1, "--kernels", self.kernels,
                   "--json"]
        done, foreign = run(command, o.quiet, {**os.environ, "TACHO_LOG_LEVEL": "ERROR"})
        return {line["test"]: line["tokens_per_second"] for line in json_lines(done.stdout) if "test" in line}, foreign

    def round(self, model):
        o = self.options
        figures, foreign = self.bench(model, o.depth, f"1,{o.batch}")
        if o.context:
            long, more = self.bench(model, o.context - o.decode, "1")
            figures[LONG_DECODE] = long["decode"]
            foreign = max(foreign, more)
        return figures, foreign


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
        done, foreign = run(command, o.quiet)
        return json.loads(done.stdout)[0]["avg_ts"], foreign

    def round(self, model):
        o = self.options
        figures, shares = {}, []
        tests = {"prefill": ("-p", o.prompt, "-n", 0), "decode": ("-p", 0, "-n", o.decode, "-d", o.depth)}
        if o.context:
            tests[LONG_DECODE] = ("-p", 0, "-n", o.decode, "-d", o.context - o.decode)
        for test, sizes in tests.items():
            figures[test], foreign = self.bench(model, *sizes)
            shares.append(foreign)
        command = [self.folder / "llama-batched-bench", "-m", model, "-c", o.batch * (o.depth + o.decode + 16),
                   "-b", 2048, "-ub", 512, "-npp", o.depth, "-ntg", o.decode, "-npl", o.batch, "-t", o.threads,
                   "-tb", o.threads, "--output-format", "jsonl"]
        done, foreign = run(command, o.quiet)
        figures["batched_decode"] = json_lines(done.stdout)[-1]["speed_tg"]
        return figures, max(foreign, *shares)


class Llama3Java:
    """llama3.java: a process for prefill and one for decode, as it measures both of one prompt. It has no batches."""

    name = "llama3.java"

    def __init__(self, options):
        self.options = options
        self.file = Path(options.llama3_java)
        if not self.file.is_file():
            sys.exit(f"--llama3-java: no such file: {self.file}")
        self.java = options.java or subprocess.run([ROOT / "scripts/find-jdk"], capture_output=True, text=True,
                                                   check=True).stdout.strip() + "/bin/java"

    def bench(self, model, prompt, tokens):
        """Tokens a second of prompt and generation; a prompt of one-letter words has a token for each."""
        o = self.options
        program = ["-jar", self.file] if self.file.suffix == ".jar" else [self.file]
        command = ["taskset", "-c", f"0-{o.threads - 1}", self.java, "--enable-preview", "--add-modules",
                   "jdk.incubator.vector", "-Djdk.incubator.vector.VECTOR_ACCESS_OOB_CHECK=0",
                   *(["--source", "25"] if self.file.suffix == ".java" else []), *program, "--model", model, "--prompt",
                   " a" * prompt, "--max-tokens", prompt + tokens + 64, "--temperature", "0", "--stream", "false"]
        done, foreign = run(command, o.quiet)
        found = re.search(r"prompt: ([\d.,]+) tokens/s.*generation: ([\d.,]+) tokens/s", done.stdout + done.stderr)
        if not found:
            sys.exit(f"{self.name} printed no tokens/s:\n{done.stderr[-1000:]}")
        return [float(rate.replace(",", ".")) for rate in found.groups()], foreign

    def round(self, model):
        o = self.options
        (prefill, _), first = self.bench(model, o.prompt, 1)
        (_, decode), second = self.bench(model, o.depth, o.decode)
        return {"prefill": prefill, "decode": decode}, max(first, second)


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="FILE", help="GGUF files")
    parser.add_argument("--llama-cpp", metavar="DIR", help="a folder with build/bin/llama-bench")
    parser.add_argument("--llama3-java", metavar="FILE", help="Llama3.java or its jar (Q8_0 and Q4_0 models)")
    parser.add_argument("--java", metavar="FILE", help="the java that runs llama3.java; by default ours")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5, help="runs of each engine, in turns (default 5)")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prefill test (default 512)")
    parser.add_argument("--decode", type=int, default=64, help="tokens to decode (default 64)")
    parser.add_argument("--depth", type=int, default=64, help="tokens in the cache before (default 64)")
    parser.add_argument("--batch", type=int, default=8, help="sequences of the batched test (default 8)")
    parser.add_argument("--context", type=int, metavar="N",
                        help="decode once more where a context of N tokens ends, e.g. 4096")
    parser.add_argument("--kernels", default="auto", metavar="P,P",
                        help="Tacho's kernels, an engine of the comparison each, e.g. native,vector (default auto)")
    parser.add_argument("--quiet", type=float, default=60, metavar="SECONDS", help="wait for a quiet machine so long")
    parser.add_argument("--json", action="store_true", help="JSON lines with every run instead of the table")
    options = parser.parse_args()
    if not 2 <= options.batch <= 128:
        parser.error(f"--batch must be 2 to 128, is {options.batch}")
    if options.context is not None and options.context <= options.decode:
        parser.error(f"--context must be above --decode, {options.decode}, is {options.context}")
    if not (options.llama_cpp or options.llama3_java):
        parser.error("nothing to compare with: --llama-cpp or --llama3-java")
    for model in options.models:
        if not model.is_file():
            parser.error(f"no such file: {model}")
    return options


def engines_of(options):
    words = options.kernels.split(",")
    engines = [Tacho(options, word, "tacho" if len(words) == 1 else f"tacho {word}") for word in words]
    if options.llama_cpp:
        engines.append(LlamaCpp(options))
    if options.llama3_java:
        engines.append(Llama3Java(options))
    return engines


def measure(engines, model, options):
    """Tokens a second of each run by engine and test, and the largest share of others."""
    runs = {engine.name: {} for engine in engines}
    worst = 0.0
    for number in range(options.rounds):
        for engine in engines:
            progress(f"{model.name}: round {number + 1} of {options.rounds}, {engine.name}")
            figures, foreign = engine.round(model)
            worst = max(worst, foreign)
            for test, figure in figures.items():
                runs[engine.name].setdefault(test, []).append(figure)
    progress()
    return runs, worst


def cells(name, medians, ours):
    """An engine's column, with our ratio to it if it is another's; a dash where it has no such test."""
    if name not in medians:
        return ["-"] if name in ours else ["-", "-"]
    return [f"{medians[name]:.2f}"] + ([] if name in ours else [f"{medians[ours[0]] / medians[name]:.2f}"])


def main():
    options = parse()
    engines = engines_of(options)
    ours = [engine.name for engine in engines if isinstance(engine, Tacho)]
    if not options.json:
        print(f"{machine()}; {options.threads} threads; medians of {options.rounds} rounds; tokens/s; ratios are of "
              f"{ours[0]}\n")
        columns = ["model", "test"]
        for engine in engines:
            columns += [engine.name] if engine.name in ours else [engine.name, "ratio"]
        columns.append("foreign")
        print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for model in options.models:
        runs, worst = measure(engines, model, options)
        for test in TESTS:
            medians = {name: statistics.median(tests[test]) for name, tests in runs.items() if test in tests}
            if not medians:
                continue
            if options.json:
                print(json.dumps({"model": model.name, "test": test, "threads": options.threads,
                                  "foreign": round(worst, 3), "medians": medians,
                                  "runs": {name: tests.get(test, []) for name, tests in runs.items()}}), flush=True)
            else:
                row = [model.name, test]
                for engine in engines:
                    row += cells(engine.name, medians, ours)
                print("| " + " | ".join([*row, f"{worst:.3f}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
