#!/usr/bin/env python3
"""Measures what a start costs: the time from starting the process to the first token, beside llama.cpp in turns, and
the memory of our server.

The time runs from the start of the process (the JVM's included) to the first byte of the answer, with the model in the
page cache: each runs once before it counts. llama.cpp runs llama-completion without its warming step, which
is its faster way. Memory is that of a server: the largest it ever had when it is ready (VmHWM), over the model
file's size, and what is its own (RssAnon) after --requests requests, less the weights and the KV cache.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import serve
import servers
from machine import ROOT, machine, progress, wait_for_quiet

MIB = 1 << 20
OURS = "tacho"
OURS_KEPT = "tacho, packed weights kept"
LLAMA_CPP = "llama.cpp"


def seconds_to_first_byte(command, environment=None):
    """From the start of a process to the first byte that it prints on stdout."""
    command = [str(word) for word in command]
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env={**os.environ, **(environment or {})}) as process:
        first = process.stdout.read(1)
        seconds = time.perf_counter() - start
        process.stdout.read()
    if process.returncode != 0 or not first:
        sys.exit(f"failed, or printed nothing: {' '.join(command)}")
    return seconds


def commands(options):
    """What is started, by name: one sequence, a context of --context tokens, the same text."""
    tacho = [ROOT / "scripts/tacho", "generate", "--model", options.model, "--prompt", options.text, "--max-tokens", 8,
             "--temperature", 0, "--ignore-eos", "--threads", options.threads, "--max-num-seqs", 1,
             "--max-model-len", options.context]
    started = {OURS: tacho}
    if options.repack_cache:
        started[OURS_KEPT] = [*tacho, "--repack-cache", options.repack_cache]
    if options.llama_cpp:
        binary = Path(options.llama_cpp) / "build" / "bin" / "llama-completion"
        if not binary.exists():
            sys.exit(f"--llama-cpp: no build/bin/llama-completion in {options.llama_cpp}")
        started[LLAMA_CPP] = [binary, "-m", options.model, "-p", options.text, "-n", 8, "--temp", 0, "-no-cnv",
                                "--no-warmup", "--no-display-prompt", "--ignore-eos", "-t", options.threads, "-c",
                                options.context]
    return started


def one_round(options, number):
    """Seconds to the first token of each, by name."""
    seconds = {}
    for name, command in commands(options).items():
        progress(f"{options.model.name}: start {number}, {name}")
        wait_for_quiet(options.quiet)
        seconds[name] = seconds_to_first_byte(command, {"TACHO_LOG_LEVEL": "ERROR"})
    return seconds


def memory(options):
    """Bytes: VmHWM when ready, RssAnon after the requests, and what the server says of weights and KV cache."""
    server = servers.tacho(options.model, options.threads, options.sequences, options.context)
    server.environment["TACHO_LOG_LEVEL"] = "INFO"
    with server:
        ready = server.memory()
        progress(f"{options.requests} requests")
        load = argparse.Namespace(streams=options.sequences, prompt=128, tokens=64, vocabulary=options.vocabulary)
        serve.load(server.url, load, options.requests, 1)
        after = server.memory()
        said = re.search(r"weights need (\d+) bytes.*?KV cache (\d+) bytes", server.printed())
    progress()
    if not said:
        sys.exit("the server's log does not say what weights and KV cache need")
    return {"file": options.model.stat().st_size, "weights": int(said.group(1)), "kv": int(said.group(2)),
            "hwm_ready": ready["VmHWM"], "rss_anon": after["RssAnon"]}


def loading_excess(used):
    """Bytes that loading needed beyond 1.1 times the file and the KV cache."""
    return used["hwm_ready"] - 1.1 * used["file"] - used["kv"]


def anonymous_excess(used):
    """Bytes of the server's own beyond weights and KV cache."""
    return used["rss_anon"] - used["weights"] - used["kv"]


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/bench start", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="FILE", help="GGUF file")
    parser.add_argument("--llama-cpp", metavar="DIR", help="a folder with build/bin/llama-completion")
    parser.add_argument("--repack-cache", metavar="DIR", help="start ours also with this cache of packed weights")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5, help="starts of each that count, in turns (default 5)")
    parser.add_argument("--context", type=int, default=512, help="tokens of the context (default 512)")
    parser.add_argument("--text", default="Once upon a time", help="the prompt")
    parser.add_argument("--sequences", type=int, default=8, help="streams of the memory test (default 8)")
    parser.add_argument("--requests", type=int, default=100, help="requests of the memory test (default 100)")
    parser.add_argument("--vocabulary", type=int, default=30000, metavar="N",
                        help="its prompts use token ids from 1000 to N (default 30000)")
    parser.add_argument("--quiet", type=float, default=60, metavar="SECONDS", help="wait for a quiet machine so long")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the tables")
    options = parser.parse_args(arguments)
    if not options.model.is_file():
        parser.error(f"no such file: {options.model}")
    if options.context < 192:
        parser.error(f"--context must be at least 192, is {options.context}")
    for name in ("threads", "rounds", "sequences", "requests"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, is {getattr(options, name)}")
    return options


def main():
    options = parse()
    # The first brings the files into the page cache and the packed weights to where they are kept.
    rounds = [one_round(options, number) for number in range(options.rounds + 1)][1:]
    runs = {name: [seconds[name] for seconds in rounds] for name in rounds[0]}
    progress()
    used = memory(options)
    if options.json:
        print(json.dumps({"model": options.model.name, "seconds_to_first_token": runs, "memory_bytes": used}))
        return
    print(f"{machine()}; {options.threads} threads; {options.model.name}; medians of {options.rounds} starts\n")
    print("| started | to the first token, s | ratio to llama.cpp |\n|---|---|---|")
    medians = {name: statistics.median(seconds) for name, seconds in runs.items()}
    for name, seconds in medians.items():
        ratio = f"{seconds / medians[LLAMA_CPP]:.2f}" if LLAMA_CPP in medians else "-"
        print(f"| {name} | {seconds:.3f} | {ratio} |")
    print(f"\n| memory of the server ({options.sequences} sequences of {options.context} tokens) | MiB |\n|---|---|")
    for name, value in (("model file", used["file"]), ("weights", used["weights"]), ("KV cache", used["kv"]),
                        ("largest until ready (VmHWM)", used["hwm_ready"]),
                        ("VmHWM less 1.1 x file and KV cache", loading_excess(used)),
                        (f"RssAnon after {options.requests} requests", used["rss_anon"]),
                        ("RssAnon less weights and KV cache", anonymous_excess(used))):
        print(f"| {name} | {value / MIB:.0f} |")


if __name__ == "__main__":
    main()
