#!/usr/bin/env python3
"""Loads our HTTP server and llama-server in turns with streams of completions, and prints tokens a second and the time
to the first token of each.

Each of --streams clients sends its next request when its last one has ended. Prompts are random token ids, other ones
in each request, so that no prefix cache helps. llama-server runs with each number of slots of --slots. A ratio is
the median of those of each round, with the lowest and the highest. Times are the client's own, from sending the
request to the first event with a token.
"""

import argparse
import http.client
import json
import os
import random
import statistics
import sys
import threading
import time
from pathlib import Path

import servers
from machine import Foreign, machine, process_seconds, progress, wait_for_quiet
from ratios import ratio

OURS = "tacho"
FIRST_ID = 1000


def completion(port, prompt, max_tokens):
    """Sends one request and reads its stream: seconds to the first token, tokens generated."""
    body = json.dumps({"model": "default", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0,
                       "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.connect()
        start = time.perf_counter()
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"HTTP {answer.status}: {answer.read(300)}")
        first = None
        tokens = 0
        for line in answer:
            if not line.startswith(b"data:") or line.strip() == b"data: [DONE]":
                continue
            event = json.loads(line[5:])
            if first is None and event.get("choices"):
                first = time.perf_counter() - start
            if event.get("usage"):
                tokens = event["usage"]["completion_tokens"]
        if first is None or tokens != max_tokens:
            raise RuntimeError(f"{tokens} of {max_tokens} tokens came")
        return first, tokens
    finally:
        connection.close()


def load(url, options, requests, seed):
    """Runs so many requests from all streams: output tokens a second, all times to the first token."""
    port = int(url.rpartition(":")[2])
    source = random.Random(seed)
    prompts = [[source.randrange(FIRST_ID, options.vocabulary) for _ in range(options.prompt)]
               for _ in range(requests)]
    results, faults, lock = [], [], threading.Lock()

    def stream():
        while True:
            with lock:
                if not prompts or faults:
                    return
                prompt = prompts.pop()
            try:
                result = completion(port, prompt, options.tokens)
            except (OSError, RuntimeError, ValueError) as fault:
                with lock:
                    faults.append(fault)
                return
            with lock:
                results.append(result)

    threads = [threading.Thread(target=stream) for _ in range(options.streams)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    if faults:
        sys.exit(f"{url}: {faults[0]}")
    return sum(tokens for _, tokens in results) / seconds, [first for first, _ in results]


def percentile(values, share):
    """Linear between the two nearest of the sorted values."""
    values = sorted(values)
    at = (len(values) - 1) * share
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (at - below)


def measure(server, options, seed):
    """One start of a server: warmed, then loaded."""
    with server:
        load(server.url, options, options.warm, seed + 1)
        wait_for_quiet(options.quiet)
        pid = server.process.pid
        with Foreign(lambda: process_seconds(pid) + process_seconds(os.getpid())) as foreign:
            rate, first = load(server.url, options, options.requests, seed)
    return {"tokens_per_second": rate, "ttft_p50": percentile(first, 0.5), "ttft_p95": percentile(first, 0.95),
            "foreign": foreign.share}


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/bench serve", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="FILE", help="GGUF file")
    parser.add_argument("--llama-cpp", required=True, metavar="DIR", help="a folder with build/bin/llama-server")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--streams", type=int, default=16, help="clients at the same time (default 16)")
    parser.add_argument("--requests", type=int, default=64, help="requests of a run (default 64)")
    parser.add_argument("--warm", type=int, default=32, help="requests before that do not count (default 32)")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of a prompt (default 128)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of an answer (default 64)")
    parser.add_argument("--vocabulary", type=int, default=30000, metavar="N",
                        help="prompts use token ids from 1000 to N (default 30000)")
    parser.add_argument("--slots", default="8,16", help="slots of llama-server, a run each (default 8,16)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each server, in turns (default 3)")
    parser.add_argument("--kernels", default="auto", help="Tacho's kernels (default auto)")
    parser.add_argument("--quiet", type=float, default=60, metavar="SECONDS", help="wait for a quiet machine so long")
    parser.add_argument("--json", action="store_true", help="JSON lines with every run instead of the table")
    options = parser.parse_args(arguments)
    if not options.model.is_file():
        parser.error(f"no such file: {options.model}")
    if options.vocabulary <= FIRST_ID:
        parser.error(f"--vocabulary must be above {FIRST_ID}, is {options.vocabulary}")
    for name in ("threads", "streams", "requests", "warm", "prompt", "tokens", "rounds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, is {getattr(options, name)}")
    try:
        options.slots = [int(word) for word in options.slots.split(",")]
    except ValueError:
        parser.error(f"--slots must be numbers with commas, is {options.slots}")
    return options


def starters(options):
    """What starts each server, by name; ours first."""
    context = (options.prompt + options.tokens + 255) // 256 * 256
    servers_by_name = {OURS: lambda: servers.tacho(options.model, options.threads, options.streams, context,
                                                   options.kernels)}
    for slots in options.slots:
        servers_by_name[f"llama.cpp, {slots} slots"] = lambda slots=slots: servers.llama_server(
            options.llama_cpp, options.model, options.threads, slots, context)
    return servers_by_name


def one_round(options, number):
    """What each server reached, by name."""
    results = {}
    for name, start in starters(options).items():
        progress(f"{options.model.name}: streams, round {number + 1}, {name}")
        results[name] = measure(start(), options, 1000 * number)
    return results


def best_other(rounds):
    """The name of the server of the others whose median of tokens a second is the highest."""
    return max((name for name in rounds[0] if name != OURS),
               key=lambda name: statistics.median(results[name]["tokens_per_second"] for results in rounds))


def column(rounds, name, key):
    """A figure of a server in each round."""
    return [results[name][key] for results in rounds]


def main():
    options = parse()
    rounds = [one_round(options, number) for number in range(options.rounds)]
    progress()
    if options.json:
        for results in rounds:
            for name, result in results.items():
                print(json.dumps({"server": name, "model": options.model.name, **result}))
        return
    print(f"{machine()}; {options.threads} threads; {options.model.name}; {options.streams} streams, "
          f"{options.prompt} in, {options.tokens} out, {options.requests} requests; medians of "
          f"{options.rounds} rounds\n")
    print(f"| server | output tokens/s | ratio of {OURS} | TTFT p50, s | TTFT p95, s | foreign |")
    print("|---|---|---|---|---|---|")
    own = column(rounds, OURS, "tokens_per_second")
    for name in rounds[0]:
        compared = "-" if name == OURS else ratio(own, column(rounds, name, "tokens_per_second"))
        rate, *times = (statistics.median(column(rounds, name, key))
                        for key in ("tokens_per_second", "ttft_p50", "ttft_p95"))
        print(f"| {name} | {rate:.1f} | {compared} | {times[0]:.3f} | {times[1]:.3f} "
              f"| {max(column(rounds, name, 'foreign')):.3f} |")


if __name__ == "__main__":
    main()
