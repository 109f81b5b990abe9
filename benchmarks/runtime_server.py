"""What the worker's HTTP server adds to an embedding, and how long calls take when 16 clients ask at once.

    python benchmarks/runtime_server.py
    python benchmarks/runtime_server.py --calls 2000 --seconds 10 --threads 2

`overhead`: one client, one short text per call, result cache off. Every other block of calls goes through HTTP (time that the
client waits, on one kept connection), the others through the same planner and forward pass in this process; the difference of
the medians is what the server adds. Beside it, from the `Server-Timing` of the same answers, what of a call was neither
tokenizing nor forward pass nor readout. `clients`: 16 closed-loop clients on one connection each; p50 and p99 of all calls.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from typing import Final

from headway.host.openmp import bound_spinning

bound_spinning(os.environ)  # before torch is imported

import torch  # noqa: E402
from quiet import CORES, busy_seconds, own_seconds  # noqa: E402

from headway.artifacts.resolve import locate  # noqa: E402
from runtime import MODEL, WORDS, ours  # noqa: E402

BLOCK: Final = 50
MOST_ADDED_MS, MOST_SPREAD = 0.6, 4.0
_PHASE = re.compile(rb"(\w+);dur=([0-9.]+)")


def text(number: int) -> str:
    """Short, and never the same twice."""
    chance = random.Random(number)
    return " ".join(chance.choices(WORDS, k=chance.randint(4, 20))) + f" {number}."


def request(number: int) -> bytes:
    body = json.dumps({"input": text(number), "encoding_format": "base64"}).encode()
    return b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@contextlib.contextmanager
def worker(threads: int, port: int, extra: tuple[str, ...] = ()) -> Iterator[None]:
    command = [sys.executable, "-m", "headway.cli.srun", "serve", MODEL, "--port", str(port), "--threads", str(threads)]
    process = subprocess.Popen([*command, *extra], stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
                if answer.status == 200:
                    break
            time.sleep(0.1)
        else:
            raise RuntimeError("the worker did not become ready within a minute")
        yield
    finally:
        process.terminate()
        process.wait(20)


def read_answer(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, rest = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), data[:300]
    length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
    while len(rest) < length:
        rest += connection.recv(1 << 16)
    return head


def overhead(args: argparse.Namespace) -> bool:
    """True when the goal is met."""
    embed = ours(locate(MODEL).path, "float32")
    over_http: list[float] = []
    in_process: list[float] = []
    beside: list[float] = []
    with worker(args.threads, args.port, ("--result-cache-entries", "0")):
        connection = socket.create_connection(("127.0.0.1", args.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(-100, args.calls):
            if (number // BLOCK) % 2:
                sent = request(number)
                began = time.perf_counter()
                connection.sendall(sent)
                head = read_answer(connection)
                took = time.perf_counter() - began
                phases = {name: float(value) / 1000 for name, value in _PHASE.findall(head)}
                if number >= 0:
                    over_http.append(took)
                    beside.append(took - phases[b"tokenize"] - phases[b"forward"] - phases[b"post"])
            else:
                began = time.perf_counter()
                embed([text(number)])
                if number >= 0:
                    in_process.append(time.perf_counter() - began)
    http, inside, added = (statistics.median(values) * 1000 for values in (over_http, in_process, beside))
    print(f"overhead  HTTP p50 {http:.3f} ms, in process p50 {inside:.3f} ms: {http - inside:+.3f} ms; of the same calls beside planning and forward: {added:.3f} ms (goal {MOST_ADDED_MS})")
    return min(http - inside, added) <= MOST_ADDED_MS


async def client(port: int, first: int, until: float, took: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = first
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(request(number))
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))  # type: ignore[index]
        assert head.startswith(b"HTTP/1.1 200"), head
        took.append(time.perf_counter() - began)
        number += 1
    writer.close()


async def ask_with(clients: int, port: int, seconds: float) -> list[float]:
    for length, keep in ((1.0, False), (seconds, True)):  # a second to warm up
        took: list[float] = []
        until = time.perf_counter() + length
        await asyncio.gather(*(client(port, 10**7 * (each + 1) + int(keep) * 10**6, until, took) for each in range(clients)))
    return sorted(took)


def clients(args: argparse.Namespace) -> bool:
    """True when the goal is met."""
    met = True
    with worker(args.threads, args.port, ("--result-cache-entries", "0")):
        for count in (1, 16):
            took = asyncio.run(ask_with(count, args.port, args.seconds))
            p50, p99 = took[len(took) // 2] * 1000, took[int(len(took) * 0.99)] * 1000
            print(f"clients   {count:2}: p50 {p50:.2f} ms, p99 {p99:.2f} ms = {p99 / p50:.2f}x (goal {MOST_SPREAD}x at 16), {len(took) / args.seconds:.0f} texts/s")
            met &= count == 1 or p99 <= MOST_SPREAD * p50
    return met


def main() -> int:
    args = _arguments()
    torch.set_num_threads(args.threads)
    print(
        f"{datetime.now():%Y-%m-%d %H:%M}, HTTP on the loopback, {MODEL} float32, 4 to 20 words, {args.threads} threads of {CORES} cores, {platform.machine()},"
        f" python {platform.python_version()}, torch {version('torch')}, uvicorn {version('uvicorn')}, {args.calls} calls, {args.seconds} s"
    )
    met = True
    for section in (overhead, clients):
        busy, own, began = busy_seconds(), own_seconds(), time.perf_counter()
        met &= section(args)
        foreign = (busy_seconds() - busy - (own_seconds() - own)) / (time.perf_counter() - began) / CORES
        print(f"          other processes took {max(0.0, foreign):.0%} of the cores")
    return int(args.strict and not met)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--port", type=int, default=18555)
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a goal is missed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
