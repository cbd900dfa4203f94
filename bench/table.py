#!/usr/bin/env python3
"""Measures every row of the speed goals in one run, and prints what is held.

The models are {1b,125m}-{q4_0,q8_0,q4_k_m,bf16,f16}.gguf in one folder. Rows (--only):
  prefill, decode, batched_decode   beside llama.cpp, every type
  context                           a decode of ours where a long context ends, to one near its beginning
  vector_prefill, vector_decode     our Vector API provider beside other JVM engines
  streams                           over HTTP, beside llama-server
  start, memory                     to the first token, with and without kept packed weights; of the server
Each round is written to --out at once; --resume leaves out what is there. A round in which others used more of the
machine than --foreign does not count, and --resume measures it again. Ends with 0 if every floor of the rows is
held, with 1 if one is missed or was not measured, with 2 for wrong usage.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import goals
import peers
import serve
import start
from engines import BATCHED_DECODE, DECODE, LONG_DECODE, PREFILL
from machine import ROOT, machine, progress

RESULTS = ROOT / "bench" / "target" / "table.jsonl"


@dataclass
class Unit:
    """One round of one row for one subject: what writes a line, and what a resumed run leaves out."""

    row: str
    subject: str
    number: int
    seconds: float
    measure: object

    @property
    def key(self):
        return self.row, self.subject, self.number


class Plan:
    """All rounds that are to be measured, in turn."""

    def __init__(self, options):
        self.options = options
        self.units = []
        for row in options.only:
            {goals.STREAMS: self.streams, goals.CONTEXT: self.context, goals.START: self.start,
             goals.MEMORY: self.memory}.get(row, lambda row=row: self.engines(row))()

    def file(self, subject):
        """The model's file, or None if it is not there."""
        file = self.options.models / f"{subject}.gguf"
        return file if file.is_file() else None

    def add(self, row, subject, rounds, seconds, measure):
        """seconds: a guess, for the estimate of what is left; it only matters beside the others."""
        self.units += [Unit(row, subject, number, seconds, measure) for number in range(rounds)]

    def peers(self, file, *more):
        names = ("threads", "prompt", "decode", "depth", "batch", "context", "quiet")
        sizes = [f"--{name}={getattr(self.options, name)}" for name in names]
        return peers.parse([str(file), *sizes, *more])

    def engines(self, row):
        o = self.options
        test = goals.VECTOR.get(row, row)
        others = [f"--{name.replace('_', '-')}={value}" for name in ("llama3_java", "jlama", "java")
                  if (value := getattr(o, name))]
        if row in goals.VECTOR and not (o.llama3_java or o.jlama):
            return
        for shape in goals.SHAPES:
            for kind in goals.VECTOR_TYPES if row in goals.VECTOR else goals.TYPES:
                file = self.file(f"{shape}-{kind}")
                if file is None:
                    continue
                if row in goals.VECTOR:
                    beside = self.peers(file, "--kernels=vector", *others)
                else:
                    beside = self.peers(file, f"--llama-cpp={o.llama_cpp}")
                engines = peers.engines_of(beside)
                if not any(engine.runs(file, test) for engine in engines[1:]):
                    continue
                gigabytes = file.stat().st_size / 1e9
                self.add(row, file.stem, o.rounds, 20 + gigabytes * (60 if row in goals.VECTOR else 25),
                         lambda number, engines=engines, file=file: peers.one_round(engines, file, test, number))

    def context(self):
        for shape in goals.SHAPES:
            file = self.file(f"{shape}-q8_0")
            if file is None:
                continue
            ours = peers.engines_of(self.peers(file, f"--llama-cpp={self.options.llama_cpp}"))[:1]

            def measure(number, ours=ours, file=file):
                return {name: peers.one_round(ours, file, test, number)[ours[0].name]
                        for name, test in ((goals.NEAR, DECODE), (goals.FAR, LONG_DECODE))}

            self.add(goals.CONTEXT, file.stem, self.options.rounds, 20 + 80 * file.stat().st_size / 1e9, measure)

    def streams(self):
        o = self.options
        file = self.file(goals.STREAMED_MODEL)
        if file:
            options = serve.parse([str(file), f"--llama-cpp={o.llama_cpp}", f"--threads={o.threads}",
                                   f"--quiet={o.quiet}", f"--requests={o.requests}", f"--warm={(o.requests + 1) // 2}"])
            self.add(goals.STREAMS, file.stem, o.rounds, 2 * o.requests,
                     lambda number: serve.one_round(options, number))

    def starts(self, file):
        o = self.options
        return start.parse([str(file), f"--llama-cpp={o.llama_cpp}", f"--threads={o.threads}", f"--quiet={o.quiet}",
                            f"--repack-cache={o.repack_cache}"])

    def start(self):
        file = self.file(goals.STARTED_MODEL)
        if file:
            options, warm = self.starts(file), []

            def measure(number):
                if not warm:
                    warm.append(start.one_round(options, number))
                return start.one_round(options, number)

            self.add(goals.START, file.stem, self.options.rounds, 10, measure)

    def memory(self):
        file = self.file(goals.STARTED_MODEL)
        if file:
            options = self.starts(file)
            self.add(goals.MEMORY, file.stem, 1, 90, lambda number: start.memory(options))


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench table", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-cpp", metavar="DIR", help="a folder with build/bin/llama-bench, llama-server")
    parser.add_argument("--llama3-java", metavar="FILE", help="Llama3.java or its jar")
    parser.add_argument("--jlama", metavar="CLASSPATH", help="jlama-core and what it needs")
    parser.add_argument("--java", metavar="FILE", help="the java that runs other JVM engines; by default ours")
    parser.add_argument("--models", type=Path, metavar="DIR", help="the folder of the models")
    parser.add_argument("--only", default=",".join(goals.ROWS), metavar="ROW,..", help="these rows (default all)")
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
    options = parser.parse_args()
    options.only = options.only.split(",")
    for row in options.only:
        if row not in goals.ROWS:
            parser.error(f"--only: {row} is none of {', '.join(goals.ROWS)}")
    if options.report:
        if not options.report.is_file():
            parser.error(f"--report: no such file: {options.report}")
        return options
    if not options.llama_cpp or not options.models:
        parser.error("--llama-cpp and --models are needed")
    if not options.models.is_dir():
        parser.error(f"--models: no such folder: {options.models}")
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, is {options.rounds}")
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


def foreign(figures):
    """The largest share of the machine that others had in a round."""
    return max((figure["foreign"] for figure in figures.values() if isinstance(figure, dict)), default=0.0)


def read(file):
    """The header of a file of results, or None, and its rounds by key; without a line that was cut off."""
    header, rounds = None, {}
    for text in file.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(text)
        except json.JSONDecodeError:
            continue
        if "machine" in record:
            header = record
        else:
            rounds[record["row"], record["subject"], record["round"]] = record["figures"]
    return header, rounds


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
                 if unit.key not in done or foreign(done[unit.key]) > options.foreign]
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
                figures = unit.measure(unit.number)
            except SystemExit as fault:
                # One engine that fails does not cost the others' rows; --resume tries again.
                failed.add((unit.row, unit.subject))
                progress()
                print(fault, file=sys.stderr)
                continue
            out.write(json.dumps({"row": unit.row, "subject": unit.subject, "round": unit.number,
                                  "figures": figures}) + "\n")
            out.flush()
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
    results, disturbed = {}, 0
    for (row, subject, _), figures in sorted(rounds.items(), key=lambda item: item[0][2]):
        if row in options.only and foreign(figures) <= options.foreign:
            results.setdefault((row, subject), []).append(figures)
        elif row in options.only:
            disturbed += 1
    findings = goals.judge(results, options.only)
    most = max((len(each) for each in results.values()), default=0)
    print(f"{header['machine']}; up to {most} rounds, {disturbed} disturbed; `{header['command']}`\n")
    print(goals.summary(findings, "scripts/bench table") + "\n")
    print(goals.details(findings) + "\n")
    print(goals.measured(results))
    missed = [f"{finding.floor.goal}, {finding.floor.subject}: {finding.verdict.strip('*')}" for finding in findings
              if not finding.held]
    for text in missed:
        print(text, file=sys.stderr)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
