"""Starts and stops the servers that the measuring scripts compare: ours and llama-server."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from machine import ROOT

START_SECONDS = 180


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process on the loopback; `with` starts it, waits until it is ready, and ends it."""

    def __init__(self, name, command, port, environment=None):
        self.name = name
        self.command = [str(word) for word in command]
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {**os.environ, **(environment or {})}

    def __enter__(self):
        self.log = tempfile.TemporaryFile(mode="a+b")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=self.environment)
        try:
            self._await_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _await_ready(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        sys.exit(f"{self.name} does not answer: {' '.join(self.command)}\n{self.printed()[-2000:]}")

    def printed(self):
        """All that it has printed so far."""
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def memory(self):
        """Fields of /proc/PID/status in bytes, e.g. VmHWM and RssAnon."""
        fields = {}
        for line in Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines():
            words = line.split()
            if len(words) == 3 and words[2] == "kB":
                fields[words[0].rstrip(":")] = int(words[1]) * 1024
        return fields


def tacho(model, threads, sequences, context, kernels="auto"):
    """Our server, with a KV cache for so many sequences of so many tokens."""
    port = free_port()
    return Server("tacho",
                  [ROOT / "scripts/tacho", "serve", "--model", model, "--port", port, "--threads", threads,
                   "--max-num-seqs", sequences, "--max-model-len", context, "--kernels", kernels,
                   "--served-model-name", "default"],
                  port, {"TACHO_LOG_LEVEL": "WARN"})


def llama_server(folder, model, threads, slots, context):
    """llama-server with so many slots of so many tokens."""
    port = free_port()
    binary = Path(folder) / "build" / "bin" / "llama-server"
    if not binary.exists():
        sys.exit(f"--llama-cpp: no build/bin/llama-server in {folder}")
    return Server("llama.cpp",
                  [binary, "-m", model, "--host", "127.0.0.1", "--port", port, "-np", slots, "-t", threads,
                   "-tb", threads, "-c", slots * context],
                  port)
