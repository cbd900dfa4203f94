#!/usr/bin/env python3
"""Measures every row of the speed goals in one run, and prints what is held.

The models are {1b,125m}-{q4_0,q8_0,q4_k_m,bf16,f16}.gguf in one folder. Rows (--only):
  prefill, decode, batched_decode   beside llama.cpp, every type
  context                           a decode of ours where a long context ends, to one near its beginning
  vector_prefill, vector_decode     our Vector API provider beside other JVM engines
  streams                           over HTTP, beside llama-server
  start, memory                     to the first token, with and without kept packed weights; of the server
Each round is written to --out at once; --resume leaves out what is there. A round does not count if others used more of
the machine than --foreign (disturbed), or if the speed of memory around its decodes changed by more than --steady or is
not known (unsteady): then it compares nothing. It is measured again, --tries times in all, and by --resume. If the
rounds of a floor that count are of more than one speed of memory, there is a line for each; all of them judge the floor.
Ends with 0 if every floor of the rows is held, with 1 if one is missed or was not measured, with 2 for wrong usage.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import goals
from machine import ROOT, machine, progress
from plan import Plan
from rounds import foreign, read, steady

RESULTS = ROOT / "bench" / "target" / "table.jsonl"
DISTURBED, UNSTEADY = "disturbed", "unsteady"


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench table", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-cpp", metavar="DIR", help="a folder with build/bin/llama-bench, llama-server")
    parser.add_argument("--llama3-java", metavar="FILE", help="Llama3.java or its jar")
    parser.add_argument("--jlama", metavar="CLASSPATH", help="jlama-core and what it needs")
    parser.add_argument("--java", metavar="FILE", help="the java that runs other JVM engines; by default ours")
    parser.add_argument("--models", type=Path, metavar="DIR", help="the folder of the models")
    parser.add_argument("--only", default=",".join(goals.ROWS), metavar="ROW,..", help="these rows (default all)")
    parser.add_argument("--shapes", default=",".join(goals.SHAPES), metavar="SHAPE,..",
                        help="models of these shapes (default %(default)s)")
    parser.add_argument("--isa", metavar="LEVEL", help="the highest instruction set that ours uses (TACHO_MAX_ISA)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="JSON lines (default %(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on with what --out has")
    parser.add_argument("--report", type=Path, metavar="FILE", help="measure nothing, show what is in this file")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    for name, value, words in (("rounds", 5, "of each row"), ("prompt", 512, "tokens of a prefill"),
                               ("decode", 64, "tokens to decode"), ("depth", 64, "tokens in the cache before"),
                               ("batch", 8, "sequences side by side"), ("context", 4096, "tokens of a long context"),
                               ("requests", 64, "requests of a round of streams")):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{words} (default {value})")
    parser.add_argument("--quiet", type=float, default=60, metavar="SECONDS", help="wait for a quiet machine so long")
    parser.add_argument("--foreign", type=float, default=0.1, metavar="SHARE",
                        help="of the machine, by others, up to which a round counts (default %(default)s)")
    parser.add_argument("--steady", type=float, default=0.12, metavar="SHARE",
                        help="by which the speed of memory may differ in a round that counts (default %(default)s)")
    parser.add_argument("--tries", type=int, default=3, metavar="N",
                        help="to measure a round until it counts (default %(default)s)")
    options = parser.parse_args()
    for name, known in (("only", goals.ROWS), ("shapes", goals.SHAPES)):
        words = getattr(options, name).split(",")
        setattr(options, name, words)
        for word in words:
            if word not in known:
                parser.error(f"--{name}: {word} is none of {', '.join(known)}")
    if not goals.judge({}, options.only, options.shapes):
        parser.error(f"--only {','.join(options.only)}: no goal for --shapes {','.join(options.shapes)}")
    if options.report:
        if not options.report.is_file():
            parser.error(f"--report: no such file: {options.report}")
        return options
    if not options.llama_cpp or not options.models:
        parser.error("--llama-cpp and --models are needed")
    if not options.models.is_dir():
        parser.error(f"--models: no such folder: {options.models}")
    for name in ("rounds", "tries"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, is {getattr(options, name)}")
    if options.out.exists() and options.out.stat().st_size and not options.resume:
        parser.error(f"{options.out} is there already: --resume goes on with it, --out names another")
    return options


def header_of(options):
    """What must be the same in all of a run; the command says what kind of file stands where, not which."""
    files = {"llama_cpp": "DIR", "llama3_java": "FILE", "jlama": "CLASSPATH", "java": "FILE", "models": "DIR"}
    words = ["scripts/bench table"] + [f"--{name.replace('_', '-')} {kind}" for name, kind in files.items()
                                       if getattr(options, name)]
    sizes = ("isa", "threads", "prompt", "decode", "depth", "batch", "context", "requests")
    words += [f"--{name} {getattr(options, name)}" for name in sizes if getattr(options, name) is not None]
    return {"machine": machine(), "command": " ".join(words),
            "files": {name: str(getattr(options, name)) for name in files}}


def fault_of(row, figures, options):
    """Why a round does not count, or None."""
    if foreign(figures) > options.foreign:
        return DISTURBED
    return UNSTEADY if row in goals.MEMORY_BOUND and not steady(figures, options.steady) else None


def try_round(unit, options, out):
    """Measures a round until it counts, but --tries times at most; each try is a line of its own."""
    for _ in range(options.tries):
        figures = unit.measure(unit.number)
        out.write(json.dumps({"row": unit.row, "subject": unit.subject, "round": unit.number,
                              "figures": figures}) + "\n")
        out.flush()
        fault = fault_of(unit.row, figures, options)
        if not fault:
            return
        progress()
        print(f"{fault}, does not count", file=sys.stderr)


def measure(options):
    """Runs what is not in --out yet and appends it."""
    if options.isa:
        os.environ["TACHO_MAX_ISA"] = options.isa
    header = header_of(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found, done = read(options.out) if options.out.exists() else (None, {})
    if found and found != header:
        other = [f"  {key}: {found.get(key)}\n  now: {value}" for key, value in header.items()
                 if found.get(key) != value]
        sys.exit("\n".join([f"{options.out} is of another run:", *other]))
    with tempfile.TemporaryDirectory(prefix="tacho-packed-") as options.repack_cache, \
            options.out.open("a", encoding="utf-8") as out:
        # Ends a line that was cut off.
        out.write("\n" + (json.dumps(header) + "\n" if not found else ""))
        units = [unit for unit in Plan(options).units
                 if unit.key not in done or fault_of(unit.row, done[unit.key], options)]
        begin, guessed, failed = time.monotonic(), 0.0, set()
        for at, unit in enumerate(units):
            left = sum(other.seconds for other in units[at:])
            seconds = left * ((time.monotonic() - begin) / guessed if guessed else 1)
            progress()
            print(f"{at + 1} of {len(units)}: {unit.row}, {unit.subject}, round {unit.number + 1}; about "
                  f"{seconds / 60:.0f} min left", file=sys.stderr)
            if (unit.row, unit.subject) in failed:
                continue
            try:
                try_round(unit, options, out)
            except SystemExit as failure:
                # One engine that fails does not cost the others' rows; --resume tries again.
                failed.add((unit.row, unit.subject))
                progress()
                print(failure, file=sys.stderr)
                continue
            guessed += unit.seconds
        progress()


def main():
    options = parse()
    if not options.report:
        try:
            measure(options)
        except KeyboardInterrupt:
            sys.exit(f"\ninterrupted; --resume goes on with {options.out}")
    header, rounds = read(options.report or options.out)
    if header is None:
        sys.exit(f"{options.report or options.out} has no line that says on which machine it was measured")
    results, faults = {}, Counter()
    for (row, subject, _), figures in sorted(rounds.items(), key=lambda item: item[0][2]):
        if row not in options.only or goals.shape_of(subject) not in options.shapes:
            continue
        fault = fault_of(row, figures, options)
        if fault:
            faults[fault] += 1
        else:
            results.setdefault((row, subject), []).append(figures)
    findings = goals.judge(results, options.only, options.shapes)
    most = max((len(each) for each in results.values()), default=0)
    counted = ", ".join(f"{faults[fault]} {fault}" for fault in (DISTURBED, UNSTEADY))
    print(f"{header['machine']}; up to {most} rounds, {counted}; `{header['command']}`\n")
    shapes = "" if len(options.shapes) == len(goals.SHAPES) else f" --shapes {','.join(options.shapes)}"
    print(goals.summary(findings, f"scripts/bench table{shapes}") + "\n")
    print(goals.details(findings) + "\n")
    print(goals.measured(results))
    missed = [f"{finding.floor.goal}, {finding.floor.subject}: {finding.verdict.strip('*')}" for finding in findings
              if not finding.held]
    for text in missed:
        print(text, file=sys.stderr)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
