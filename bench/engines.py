"""The engines that are measured beside each other: each runs one test of one model in a process of its own.

`measure(model, test)` gives a figure: `tokens_per_second`, and `foreign`, the share of the machine that others used.
That of a decode, which memory bounds, has `memory_gb_per_second`, what a loop that only reads got from memory right
before and right behind the test; and if it is ours, `bytes_per_token`, what its operators read and wrote, and
`attention_bytes_per_token` of them.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import safetensors
from machine import ROOT, json_lines, run

PREFILL = "prefill"
DECODE = "decode"
BATCHED_DECODE = "batched_decode"
LONG_DECODE = "decode_at_context"
JLAMA_MODELS = ROOT / "bench" / "target" / "jlama"
DECODES = (DECODE, BATCHED_DECODE, LONG_DECODE)
TESTS = (PREFILL, *DECODES)


def depth_of(options, test):
    """Tokens in the cache before those decoded: the first comes from the prompt, so that one more has to fit."""
    return options.context - options.decode - 1 if test == LONG_DECODE else options.depth


def java():
    """The java that ours runs on."""
    home = subprocess.run([ROOT / "scripts/find-jdk"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{home}/bin/java"


def pinned(options):
    """Keeps a process that cannot be told a number of threads on so many processors."""
    return ["taskset", "-c", f"0-{options.threads - 1}"]


class Engine:
    """What is measured."""

    tests = TESTS

    def runs(self, model, test):
        """Whether it can run this test of this model file."""
        return test in self.tests

    def run(self, command, test, environment=None):
        """`machine.run`, with the speed of memory around what it bounds."""
        o = self.options
        return run(command, o.quiet, environment, o.threads if test in DECODES else 0)


class Tacho(Engine):
    """Ours. The test runs for some seconds before it counts."""

    def __init__(self, options, kernels="auto", name="tacho"):
        self.options = options
        self.kernels = kernels
        self.name = name

    def measure(self, model, test):
        o = self.options
        prompt, decode = (o.prompt, 0) if test == PREFILL else (0, o.decode)
        batch = o.batch if test == BATCHED_DECODE else 1
        command = [ROOT / "scripts/tacho", "bench", "--model", model, "--threads", o.threads, "--prompt", prompt,
                   "--decode", decode, "--depth", depth_of(o, test), "--batch", batch, "--repeat", 1, "--kernels",
                   self.kernels, "--json"]
        done, state = self.run(command, test, {**os.environ, "TACHO_LOG_LEVEL": "ERROR"})
        lines = json_lines(done.stdout)
        figure = {"tokens_per_second": lines[0]["tokens_per_second"], **state}
        if test != PREFILL:
            figure.update(bytes_of([line for line in lines if "operator" in line], decode, batch))
        return figure


def bytes_of(operators, steps, batch):
    """Bytes of each token by the operators' own counts.

    The counts begin a little after the first token, so that a step may be missing: bytes of a call times calls a step.
    """
    every = attention = 0
    for operator in operators:
        of_token = operator["bytes"] / operator["calls"] * round(operator["calls"] / steps) / batch
        every += of_token
        if operator["operator"] == "attention":
            attention += of_token
    return {"bytes_per_token": every, "attention_bytes_per_token": attention}


class LlamaCpp(Engine):
    """llama-bench for one sequence, llama-batched-bench for several. Each runs once before it counts."""

    name = "llama.cpp"

    def __init__(self, options):
        self.options = options
        self.folder = Path(options.llama_cpp) / "build" / "bin"
        if not (self.folder / "llama-bench").exists():
            sys.exit(f"--llama-cpp: no build/bin/llama-bench in {options.llama_cpp}")

    def measure(self, model, test):
        o = self.options
        if test == BATCHED_DECODE:
            command = [self.folder / "llama-batched-bench", "-m", model, "-c", o.batch * (o.depth + o.decode + 16),
                       "-b", 2048, "-ub", 512, "-npp", o.depth, "-ntg", o.decode, "-npl", o.batch, "-t", o.threads,
                       "-tb", o.threads, "--output-format", "jsonl"]
            done, state = self.run(command, test)
            return {"tokens_per_second": json_lines(done.stdout)[-1]["speed_tg"], **state}
        sizes = ["-p", o.prompt, "-n", 0] if test == PREFILL else ["-p", 0, "-n", o.decode, "-d", depth_of(o, test)]
        command = [self.folder / "llama-bench", "-m", model, "-t", o.threads, "-r", 1, "-o", "json", *sizes]
        done, state = self.run(command, test)
        return {"tokens_per_second": json.loads(done.stdout)[0]["avg_ts"], **state}


class Llama3Java(Engine):
    """llama3.java. It has no batches, and no run before the one that counts, so that a figure holds the time in which
    its code is compiled."""

    name = "llama3.java"
    tests = (PREFILL, DECODE)

    def __init__(self, options):
        self.options = options
        self.file = Path(options.llama3_java)
        if not self.file.is_file():
            sys.exit(f"--llama3-java: no such file: {self.file}")
        self.java = options.java or java()

    def measure(self, model, test):
        """A prompt of one-letter words has a token for each."""
        o = self.options
        prompt, tokens = (o.prompt, 1) if test == PREFILL else (o.depth, o.decode)
        program = ["-jar", self.file] if self.file.suffix == ".jar" else ["--source", "25", self.file]
        command = [*pinned(o), self.java, "--enable-preview", "--add-modules", "jdk.incubator.vector",
                   "-Djdk.incubator.vector.VECTOR_ACCESS_OOB_CHECK=0", *program, "--model", model, "--prompt",
                   " a" * prompt, "--max-tokens", prompt + tokens + 64, "--temperature", "0", "--stream", "false"]
        done, state = self.run(command, test)
        found = re.search(r"prompt: ([\d.,]+) tokens/s.*generation: ([\d.,]+) tokens/s", done.stdout + done.stderr)
        if not found:
            sys.exit(f"{self.name} printed no tokens/s:\n{done.stderr[-1000:]}")
        rate = found.group(1 if test == PREFILL else 2)
        return {"tokens_per_second": float(rate.replace(",", ".")), **state}


class Jlama(Engine):
    """Jlama on its Vector API kernels, with its own four-bit weights and activations of 8 bits. As it reads no GGUF, it
    runs NAME-q4_0.gguf by weights made of NAME-bf16.gguf beside it. The test runs for some seconds before it counts."""

    name = "Jlama"
    tests = (PREFILL, DECODE)
    program = ROOT / "bench" / "JlamaBench.java"

    def __init__(self, options):
        self.options = options
        for file in options.jlama.split(os.pathsep):
            if not Path(file).is_file():
                sys.exit(f"--jlama: no such file: {file}")
        self.java = options.java or java()

    def runs(self, model, test):
        return super().runs(model, test) and original(model) is not None

    def run_program(self, what, *words):
        command = [*pinned(self.options), self.java, "--add-modules", "jdk.incubator.vector",
                   "-Djdk.incubator.vector.VECTOR_ACCESS_OOB_CHECK=0", "-cp", self.options.jlama, self.program, what,
                   *words]
        return self.run(command, what)

    def measure(self, model, test):
        o = self.options
        sizes = [o.prompt] if test == PREFILL else [o.depth, o.decode]
        done, state = self.run_program(test, self.folder(model), o.threads, *sizes)
        return {"tokens_per_second": json_lines(done.stdout)[-1]["tokens_per_second"], **state}

    def folder(self, model):
        """Where its weights of this model are; made if they are not there."""
        file = original(model)
        folder = JLAMA_MODELS / f"{file.stem}-{file.stat().st_size}-{file.stat().st_mtime_ns}"
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=made(JLAMA_MODELS)) as beside:
                whole, packed = Path(beside) / "whole", Path(beside) / "packed"
                safetensors.write(file, whole)
                self.run_program("quantize", whole, packed)
                packed.rename(folder)
        return folder


def original(model):
    """The file in BF16 of a model in Q4_0, or None."""
    file = model.with_name(model.name.replace("-q4_0.gguf", "-bf16.gguf"))
    return file if file != model and file.is_file() else None


def made(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return folder
