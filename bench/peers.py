#!/usr/bin/env python3
"""Runs Tacho and other engines on the same model files, in turns, and prints what they reach and the ratios.

A test of one engine follows the same test of another, so that both meet the machine in the same state: a ratio is the
median of those of each round, with the lowest and the highest. It is worth something only if nothing else ran: before
each run the script waits for a second in which others used less than 5 % of the machine, and it prints the largest
share that others had during the runs (`foreign`). `memory` is what a loop that only reads got before and behind
each decode of a round, lowest and highest of the rounds; `of DRAM` is what a decode of ours read a second, as a part of
it; in a cache a decode can be above that.
"""

import argparse
import json
import os
import statistics
from pathlib import Path

from engines import BATCHED_DECODE, DECODE, LONG_DECODE, PREFILL, TESTS, Jlama, Llama3Java, LlamaCpp, Tacho
from machine import head, line, machine, progress
from ratios import ratio
from rounds import dram_share, foreign, memory_speed, readings


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="FILE", help="GGUF files")
    parser.add_argument("--llama-cpp", metavar="DIR", help="a folder with build/bin/llama-bench")
    parser.add_argument("--llama3-java", metavar="FILE", help="Llama3.java or its jar (Q8_0 and Q4_0 models)")
    parser.add_argument("--jlama", metavar="CLASSPATH", help="jlama-core and what it needs (Q4_0 models)")
    parser.add_argument("--java", metavar="FILE", help="the java that runs other JVM engines; by default ours")
    parser.add_argument("--tests", metavar="TEST,..", default=f"{PREFILL},{DECODE},{BATCHED_DECODE}",
                        help=f"of {', '.join(TESTS)} (default %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5, help="runs of each engine, in turns (default 5)")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prefill test (default 512)")
    parser.add_argument("--decode", type=int, default=64, help="tokens to decode (default 64)")
    parser.add_argument("--depth", type=int, default=64, help="tokens in the cache before (default 64)")
    parser.add_argument("--batch", type=int, default=8, help=f"sequences of {BATCHED_DECODE} (default 8)")
    parser.add_argument("--context", type=int, metavar="N", default=4096,
                        help=f"where the context of {LONG_DECODE} ends, in tokens (default 4096)")
    parser.add_argument("--kernels", default="auto", metavar="P,P",
                        help="Tacho's kernels, an engine of the comparison each, e.g. native,vector (default auto)")
    parser.add_argument("--quiet", type=float, default=60, metavar="SECONDS", help="wait for a quiet machine so long")
    parser.add_argument("--json", action="store_true", help="JSON lines with every run instead of the table")
    options = parser.parse_args(arguments)
    options.tests = options.tests.split(",")
    for test in options.tests:
        if test not in TESTS:
            parser.error(f"--tests: {test} is none of {', '.join(TESTS)}")
    for name in ("threads", "rounds", "prompt", "decode", "depth"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, is {getattr(options, name)}")
    if not 2 <= options.batch <= 128:
        parser.error(f"--batch must be 2 to 128, is {options.batch}")
    if options.context < options.decode + 2:
        parser.error(f"--context must be at least --decode + 2, {options.decode + 2}, is {options.context}")
    if not (options.llama_cpp or options.llama3_java or options.jlama or "," in options.kernels):
        parser.error("nothing to compare with: --llama-cpp, --llama3-java, --jlama or several --kernels")
    for model in options.models:
        if not model.is_file():
            parser.error(f"no such file: {model}")
    return options


def engines_of(options):
    """Ours first."""
    words = options.kernels.split(",")
    engines = [Tacho(options, word, "tacho" if len(words) == 1 else f"tacho {word}") for word in words]
    if options.llama_cpp:
        engines.append(LlamaCpp(options))
    if options.llama3_java:
        engines.append(Llama3Java(options))
    if options.jlama:
        engines.append(Jlama(options))
    return engines


def one_round(engines, model, test, number):
    """A figure of each engine that has the test, by name; every other round begins with the last of them."""
    having = [engine for engine in engines if engine.runs(model, test)]
    figures = {}
    for engine in having if number % 2 == 0 else reversed(having):
        progress(f"{model.name}: {test}, round {number + 1}, {engine.name}")
        figures[engine.name] = engine.measure(model, test)
    return figures


def rates(rounds, name):
    """Tokens a second of an engine in each round."""
    return [figures[name]["tokens_per_second"] for figures in rounds]


def columns(names):
    """The head of a table of engines, ours first."""
    return ["model", "test", names[0], *(word for name in names[1:] for word in (name, "ratio", "of medians")),
            "memory, GB/s", "of DRAM", "foreign"]


def cells(names, rounds):
    """What stands in a line of that table behind model and test; a dash where an engine has no such test."""
    own = names[0]
    row = []
    for name in names:
        if name not in rounds[0]:
            row += ["-", "-", "-"]
            continue
        row.append(f"{statistics.median(rates(rounds, name)):.2f}")
        if name != own:
            compared = ratio(rates(rounds, own), rates(rounds, name))
            row += [str(compared), f"{compared.of_medians:.2f}"]
    if all(readings(figures) for figures in rounds):
        speeds = [memory_speed(figures) for figures in rounds]
        row += [f"{min(speeds):.0f} to {max(speeds):.0f}", f"{100 * dram_share(rounds, own):.0f} %"]
    else:
        row += ["-", "-"]
    row.append(f"{max(map(foreign, rounds)):.3f}")
    return row


def main():
    options = parse()
    engines = engines_of(options)
    names = [engine.name for engine in engines]
    if not options.json:
        print(f"{machine()}; {options.threads} threads; medians of {options.rounds} rounds; tokens/s; ratios are of "
              f"{names[0]}\n")
        print(head(columns(names)))
    for model in options.models:
        for test in options.tests:
            rounds = [one_round(engines, model, test, number) for number in range(options.rounds)]
            progress()
            if options.json:
                print(json.dumps({"model": model.name, "test": test, "threads": options.threads, "rounds": rounds}),
                      flush=True)
            else:
                print(line([model.name, test, *cells(names, rounds)]), flush=True)


if __name__ == "__main__":
    main()
