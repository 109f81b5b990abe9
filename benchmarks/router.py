"""What a router adds to a chat completion: ours, the LiteLLM proxy, and the backend alone, in one run before the same trivial backend.

    python benchmarks/router.py
    python benchmarks/router.py --peer /path/to/venv --seconds 8 --runs 5 --strict

`LiteLLM`: `pip install 'litellm[proxy]==1.108.7'` in an environment of its own, named with --peer; left out where there is none. Client, router
and backend share the cores. Closed loop over kept connections, one and 16 clients; the contenders take turns, medians over the runs. `added` is a
contender's p50 or p99 less that of the backend alone. `rules` compares two of our routers at one client with a prompt of 2 kB: one without
signals, one with 40 keyword lists of 5 words, 5 context and 5 structure rules, all used by decisions. `chunks` is how long the chunks of a stream
with one chunk each 100 ms are under way.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aiohttp
from quiet import add_reading_options, alternate, reading_options

HERE = Path(__file__).parent
MOST_ADDED_SHARE, LEAST_RATIO, MOST_RULES_MS = 1 / 8, 10, 0.3
_WORDS = [
    "apple", "river", "stone", "cloud", "music", "paper", "light", "bread", "horse", "green", "winter", "table", "garden", "market", "silver", "window",
    "forest", "letter", "summer", "copper",
]  # fmt: skip


@dataclass(frozen=True)
class Contender:
    """`model` is the name that its requests ask for."""

    name: str
    url: str
    model: str
    pid: int


@dataclass
class Load:
    """Quantiles in ms of one closed-loop reading."""

    rate: float
    p50: float
    p99: float


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def server(command: Sequence[str], url: str, seconds: float = 120, **options: Any) -> Iterator[int]:
    """A process that answers GET `url` with 200 before `seconds` have passed; yields its pid."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        end = time.monotonic() + seconds
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command[0]} did not serve {url}")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
        return bool(answer.status == 200)
    return False


@contextlib.contextmanager
def backend() -> Iterator[Contender]:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "mock_upstream:app", "--app-dir", str(HERE), "--port", str(port), "--log-level", "warning"]
    url = f"http://127.0.0.1:{port}"
    with server(command, url) as pid:
        yield Contender("backend alone", url, "mock", pid)


@contextlib.contextmanager
def ours(name: str, upstream: Contender, routing: Mapping[str, Any]) -> Iterator[Contender]:
    port, management = free_port(), free_port()
    config = {
        "version": "v0.3",
        "listeners": [{"name": "public", "port": port}],
        "providers": {"models": [{"name": "mock", "backend_refs": [{"endpoint": upstream.url.removeprefix("http://")}]}], "defaults": {"model": "mock"}},
        "routing": routing,
        "global": {
            "services": {"management_api": {"port": management}, "observability": {"metrics": {"enabled": False}}},
            "model_catalog": {"deployments": None},
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.yaml")
        path.write_text(json.dumps(config))
        command = [sys.executable, "-m", "headway.cli.sr", "serve", "--config", str(path)]
        url = f"http://127.0.0.1:{port}"
        with server(command, f"{url}/ready", cwd=folder) as pid:
            yield Contender(name, url, "vllm-sr/auto", pid)


@contextlib.contextmanager
def litellm(environment: Path, upstream: Contender) -> Iterator[Contender]:
    port = free_port()
    models = [{"model_name": "mock", "litellm_params": {"model": "openai/mock", "api_base": f"{upstream.url}/v1", "api_key": "none"}}]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.yaml")
        path.write_text(json.dumps({"model_list": models}))
        url = f"http://127.0.0.1:{port}"
        command = [str(environment / "bin" / "litellm"), "--config", str(path), "--host", "127.0.0.1", "--port", str(port)]
        variables = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
        variables["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"  # no keys on either side
        with server(command, f"{url}/health/liveliness", cwd=folder, env=variables) as pid:
            yield Contender("LiteLLM", url, "mock", pid)


async def closed_loop(contender: Contender, clients: int, seconds: float, prompt: str) -> Load:
    """Raises RuntimeError if an answer is not 200."""
    body = {"model": contender.model, "messages": [{"role": "user", "content": prompt}], "max_tokens": 4}
    raw, url, times = json.dumps(body).encode(), f"{contender.url}/v1/chat/completions", list[float]()
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    end = time.perf_counter() + seconds

    async def client(session: aiohttp.ClientSession) -> None:
        while (began := time.perf_counter()) < end:
            async with session.post(url, data=raw, headers=headers) as answer:
                await answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"{contender.name} answered {answer.status}")
            times.append(time.perf_counter() - began)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began = time.perf_counter()
        await asyncio.gather(*(client(session) for _ in range(clients)))
        wall = time.perf_counter() - began
    times.sort()
    return Load(len(times) / wall, 1e3 * statistics.median(times), 1e3 * times[int(0.99 * (len(times) - 1))])


async def chunk_delays(contender: Contender, clients: int) -> list[float]:
    """Milliseconds between the sending of each chunk of a stream by the backend and its arrival here, sorted."""
    body = {"model": contender.model, "messages": [{"role": "user", "content": "Say ok."}], "stream": True}
    found: list[float] = []

    async def client(session: aiohttp.ClientSession) -> None:
        async with session.post(f"{contender.url}/v1/chat/completions", json=body, headers={"accept-encoding": "gzip"}) as answer:
            async for line in answer.content:
                now = time.monotonic_ns()
                sent = json.loads(line[6:])["choices"][0]["delta"].get("content") if line.startswith(b"data: {") else None
                if sent:
                    found.append((now - int(sent)) / 1e6)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return sorted(found)


def compared(contenders: Sequence[Contender], clients: int, prompt: str, args: argparse.Namespace) -> list[Load]:
    """Medians of each contender's readings."""
    found: dict[str, list[Load]] = {contender.name: [] for contender in contenders}

    def reading(contender: Contender) -> Callable[[int], float]:
        def work(run: int) -> float:
            load = asyncio.run(closed_loop(contender, clients, args.seconds, prompt))
            kept = found[contender.name]
            kept[run:] = [load]  # a reading that is taken again replaces the first
            return load.p50

        return work

    for contender in contenders:  # warm
        asyncio.run(closed_loop(contender, clients, 1, prompt))
    pids = [contender.pid for contender in contenders]
    alternate([(contender.name, reading(contender)) for contender in contenders], args.runs, others=pids, **reading_options(args))
    return [_median(found[contender.name]) for contender in contenders]


def _median(loads: Sequence[Load]) -> Load:
    return Load(*(statistics.median(getattr(load, name) for load in loads) for name in ("rate", "p50", "p99")))


def heuristic_routing() -> dict[str, Any]:
    """Rules that the prompt below does not meet, so that all of them are looked at."""
    keywords = [{"name": f"k{at}", "operator": "OR", "keywords": [f"{_WORDS[(at + number) % len(_WORDS)]}{at}" for number in range(5)]} for at in range(40)]
    contexts = [{"name": f"c{at}", "min_tokens": f"{10 + at}K", "max_tokens": f"{20 + at}K"} for at in range(5)]
    structures = [
        {"name": f"s{at}", "feature": {"type": "count", "source": {"type": "regex", "pattern": rf"\bstep {at}\d+\b"}}, "predicate": {"gte": 3}}
        for at in range(5)
    ]
    leaves = [
        *({"type": "keyword", "name": rule["name"]} for rule in keywords),
        *({"type": "context", "name": rule["name"]} for rule in contexts),
        *({"type": "structure", "name": rule["name"]} for rule in structures),
    ]
    decisions = [
        {"name": f"d{at}", "priority": at, "rules": {"operator": "OR", "conditions": leaves[at::5]}, "modelRefs": [{"model": "mock"}]} for at in range(5)
    ]
    signals = {"keywords": keywords, "context": contexts, "structure": structures}
    return {"signals": signals, "decisions": [*decisions, plain_decision()]}


def plain_decision() -> dict[str, Any]:
    return {"name": "all", "priority": -1, "modelRefs": [{"model": "mock"}]}


def prompt_of(size: int) -> str:
    words = " ".join(_WORDS[at % len(_WORDS)] for at in range(size // 5))
    return words[:size]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--peer", type=Path, help="environment that has the LiteLLM proxy")
    parser.add_argument("--seconds", type=float, default=4, help="of one reading")
    add_reading_options(parser)
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        alone = stack.enter_context(backend())
        plain = stack.enter_context(ours("headway", alone, {"decisions": [plain_decision()]}))
        ruled = stack.enter_context(ours("headway, 50 rules", alone, heuristic_routing()))
        contenders = [alone, plain]
        litellm_version = "absent"
        if args.peer is not None:
            contenders.append(stack.enter_context(litellm(args.peer, alone)))
            litellm_version = _version_in(args.peer)
        print(f"HTTP, {os.cpu_count()} cores shared by client, router and backend; {platform.processor() or platform.machine()}; aiohttp client")
        print(f"headway {version('headway')}, LiteLLM {litellm_version}, {args.runs} runs of {args.seconds:g} s, medians")
        return _report(contenders, plain, ruled, args)


def _version_in(environment: Path) -> str:
    command = [str(environment / "bin" / "python"), "-c", "from importlib.metadata import version; print(version('litellm'))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _report(contenders: Sequence[Contender], plain: Contender, ruled: Contender, args: argparse.Namespace) -> int:
    missed = []
    single = compared(contenders, 1, "Say ok.", args)
    many = compared(contenders, 16, "Say ok.", args)
    print(f"{'':20} {'1 client':>10} {'p50 ms':>8} {'p99 ms':>8} {'+p50':>7} {'+p99':>7} {'16 clients':>11} {'p50 ms':>8} {'p99 ms':>8}")
    for contender, one, full in zip(contenders, single, many, strict=True):
        print(
            f"{contender.name:20} {one.rate:8.0f}/s {one.p50:8.2f} {one.p99:8.2f} {one.p50 - single[0].p50:7.2f} {one.p99 - single[0].p99:7.2f}"
            f" {full.rate:9.0f}/s {full.p50:8.2f} {full.p99:8.2f}"
        )
    if len(contenders) > 2:
        base, mine, theirs = single
        ratio = many[1].rate / many[2].rate
        shares = (mine.p50 - base.p50) / (theirs.p50 - base.p50), (mine.p99 - base.p99) / (theirs.p99 - base.p99)
        print(f"ours / LiteLLM: {ratio:.1f} x the requests per second; added p50 {shares[0]:.3f}, added p99 {shares[1]:.3f} of its")
        if ratio < LEAST_RATIO or max(shares) > MOST_ADDED_SHARE:
            missed.append("LiteLLM")
    for clients in (1, 16):
        for contender in contenders:
            delays = asyncio.run(chunk_delays(contender, clients))
            print(f"chunks of {clients} stream(s), {contender.name}: p50 {statistics.median(delays):.2f} ms, p99 {delays[int(0.99 * (len(delays) - 1))]:.2f} ms")
    bare, full = compared([plain, ruled], 1, prompt_of(2000), args)
    print(f"50 rules on a prompt of 2 kB: p50 {bare.p50:.3f} ms without, {full.p50:.3f} ms with, +{full.p50 - bare.p50:.3f} ms")
    if full.p50 - bare.p50 > MOST_RULES_MS:
        missed.append("50 rules")
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed and args.strict else 0


if __name__ == "__main__":
    sys.exit(main())
