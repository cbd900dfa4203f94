"""The rounds that `scripts/bench table` measures: each row of the goals for each model that is there."""

from dataclasses import dataclass

import goals
import peers
import serve
import start
from engines import DECODE, LONG_DECODE


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
        """The model's file, or None if it is not there or its shape is not asked for."""
        file = self.options.models / f"{subject}.gguf"
        return file if goals.shape_of(subject) in self.options.shapes and file.is_file() else None

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
