"""Headway beside transformers' generate and beside any running OpenAI-compatible server, in one run, in one table.

    python benchmarks/engine.py                                        all sections
    python benchmarks/engine.py --sections concurrent,mixed --runs 5
    python benchmarks/engine.py --peer llama.cpp=http://127.0.0.1:8102 --peer-body '{"cache_prompt": false}'

Contenders take turns. Readings during which other processes took more than 3 % of the cores are thrown away and taken
again (a peer that runs on this machine is not "other"). Figures are medians; the ratio is to transformers in the same
section, or, for the prefix section, cached to uncached. Prompts are random tokens, new in each run, the same for all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from contenders import Failed, InProcess, OverHttp, Transformers, headway_server
from quiet import CORES, Readings, alternate, tree_rss

from headway.bench.prompts import Prompt, RandomText
from headway.bench.serve import first_model
from headway.bench.tokenizer import prompt_tokenizer

SECTIONS = ("concurrent", "mixed", "prefix", "start")
CONTENDERS = ("llm", "http", "transformers")
IN_PROCESS, HTTP, GENERATE = "Headway LLM", "headway serve", "transformers generate"


@dataclass(frozen=True)
class Row:
    """One line of the table. `ratio` is the median divided by the one of the reference of its section."""

    section: str
    contender: str
    path: str  # "in process" or "HTTP"
    figure: str
    median: float
    runs: list[float]
    ratio: float | None
    foreign: float
    disturbed: int
    thrown_away: int


@dataclass
class Bench:
    """The contenders of this run and how they are measured."""

    args: argparse.Namespace
    tokenizer: Any
    llm: InProcess | None = None
    servers: dict[str, OverHttp] = field(default_factory=dict)
    generate: Transformers | None = None
    rows: list[Row] = field(default_factory=list)

    def prompts(self, lengths: list[tuple[int, int]], seed: str, prefix: str = "") -> list[Prompt]:
        """Random prompts of (input, output) tokens; `prefix` is part of the input."""
        texts = RandomText(self.tokenizer, random.Random(seed))
        made = [texts.make(size, prefix) for size, _ in lengths]
        return [
            Prompt(text, tuple(self.tokenizer.encode(text, add_special_tokens=False)), wanted)
            for text, (_, wanted) in zip(made, lengths, strict=True)
        ]

    def take_turns(self, section: str, figure: str, works: list[tuple[str, str, Callable[[int], float]]], reference: str | None) -> None:
        """Measure (contender, path, work) in turns and add a row for each."""
        say(f"{section}: {figure}")
        others = [pid for server in self.servers.values() if (pid := server.pid)]
        readings = alternate(
            [(name, work) for name, _, work in works], self.args.runs, others=others, say=say,
            foreign_limit=self.args.foreign_limit / 100, tries=self.args.tries, calm=self.args.calm,
        )  # fmt: skip
        base = next((r.median for r in readings if r.name == reference), None)
        for reading, (_, path, _) in zip(readings, works, strict=True):
            self.rows.append(_row(section, path, figure, reading, base))

    def throughput(self, section: str, figure: str, make: Callable[[int], list[Prompt]], concurrency: int) -> None:
        """Output tokens/s of everybody on the prompts of each run."""
        works: list[tuple[str, str, Callable[[int], float]]] = []
        if llm := self.llm:
            works.append((IN_PROCESS, "in process", lambda run: llm.tokens_per_second(make(run))))
        for name, server in self.servers.items():
            works.append((name, "HTTP", lambda run, server=server: server.tokens_per_second(make(run), concurrency)))
        if generate := self.generate:
            works.append((GENERATE, "in process", lambda run: generate.tokens_per_second(make(run), self.args.concurrency)))
        for _, _, work in works:
            work(-1)  # warm up
        self.take_turns(section, figure, works, GENERATE)

    # ---- sections --------------------------------------------------------------------------------------------------

    def concurrent(self) -> None:
        """Equal lengths, all at once: transformers does not waste anything here."""
        args = self.args
        lengths = [(args.input, args.output)] * args.concurrency
        title = f"output tok/s, {args.concurrency} concurrent, {args.input} in / {args.output} out"
        self.throughput("concurrent", title, lambda run: self.prompts(lengths, f"concurrent {run}"), args.concurrency)

    def mixed(self) -> None:
        """Lengths that differ: a static batch waits for its longest."""
        args = self.args
        (low_in, high_in), (low_out, high_out) = args.mixed_input, args.mixed_output

        def make(run: int) -> list[Prompt]:
            rng = random.Random(f"lengths {run}")
            lengths = [(rng.randint(low_in, high_in), rng.randint(low_out, high_out)) for _ in range(args.mixed_requests)]
            return self.prompts(lengths, f"mixed {run}")

        title = f"output tok/s, {args.mixed_requests} requests, {low_in}-{high_in} in / {low_out}-{high_out} out, {args.concurrency} at once"
        self.throughput("mixed", title, make, args.concurrency)

    def prefix(self) -> None:
        """Time to the first token with and without a beginning that is in the prefix cache."""
        args = self.args
        total = args.prefix_tokens + args.prefix_new
        shared = self.prompts([(args.prefix_tokens, 1)], "prefix")[0]
        first: list[tuple[str, str, Callable[[Prompt], float]]] = []
        if self.llm:
            first.append((IN_PROCESS, "in process", self.llm.first_token_seconds))
        first += [(name, "HTTP", server.first_token_seconds) for name, server in self.servers.items()]
        for name, path, ask in first:
            ask(self.prompts([(total, 1)], f"{name} warm", shared.text)[0])

            def uncached(run: int, ask: Callable[[Prompt], float] = ask, name: str = name) -> float:
                return sum(ask(p) for p in self.prompts([(total, 1)] * args.prefix_repeats, f"{name} fresh {run}")) / args.prefix_repeats

            def cached(run: int, ask: Callable[[Prompt], float] = ask, name: str = name) -> float:
                made = self.prompts([(total, 1)] * args.prefix_repeats, f"{name} shared {run}", shared.text)
                return sum(ask(p) for p in made) / args.prefix_repeats

            works = [(f"{name}, uncached", path, uncached), (f"{name}, cached", path, cached)]
            figure = f"TTFT in s, {args.prefix_tokens} shared + {args.prefix_new} new tokens"
            self.take_turns("prefix", figure, works, f"{name}, uncached")

    def start(self) -> None:
        """From `headway serve` to the first answer, and what it occupies then. Peers: only memory, as they are now."""
        args = self.args
        memory: list[float] = []

        def once(run: int) -> float:
            with headway_server(args.model, args.dtype) as (_, pid, seconds):
                memory.append(tree_rss(pid) / 2**20)
                return seconds

        say("start")
        [reading] = alternate([(HTTP, once)], args.runs, say=say, foreign_limit=args.foreign_limit / 100, tries=args.tries, calm=args.calm)
        self.rows.append(_row("start", "HTTP", "s from start to first answer", reading, None))
        self.rows.append(_row("start", "HTTP", "RSS in MiB after the first answer", Readings(HTTP, memory), None))
        for name, server in self.servers.items():
            if pid := server.pid:
                now = Readings(name, [tree_rss(pid) / 2**20])
                self.rows.append(_row("start", "HTTP", "RSS in MiB at the end of this run", now, None))


def _row(section: str, path: str, figure: str, reading: Readings, base: float | None) -> Row:
    ratio = reading.median / base if base else None
    foreign = max(reading.foreign, default=0.0)
    return Row(section, reading.name, path, figure, reading.median, reading.values, ratio, foreign, reading.disturbed, reading.thrown_away)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def conditions(args: argparse.Namespace, peers: dict[str, OverHttp]) -> dict[str, Any]:
    """What must be known to repeat the figures."""
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "date": datetime.now().isoformat(timespec="seconds"),
        "cpu": names[0] if names else platform.processor(),
        "cores": CORES,
        "threads": torch.get_num_threads(),
        "nice": os.nice(0),
        "model": args.model,
        "dtype": args.dtype,
        "runs": args.runs,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("headway", "torch", "transformers")},
        "peers": {name: {"url": peer.url, "model": peer.model, "body": dict(peer.body)} for name, peer in peers.items()},
        "load": f"greedy, ignore_eos, distinct random prompts, at most {args.concurrency} sequences at once, clients on the same machine",
    }


def table(told: dict[str, Any], rows: list[Row]) -> str:
    """Conditions, then one line per figure."""
    head = [f"{key}: {json.dumps(value) if isinstance(value, dict) else value}" for key, value in told.items()]
    lines = [("section", "contender", "path", "median", "ratio", "foreign", "runs", "figure")]
    for row in rows:
        mark = "*" if row.disturbed else ""
        lines.append((
            row.section, row.contender, row.path, f"{row.median:.4g}{mark}", "" if row.ratio is None else f"{row.ratio:.2f}x",
            f"{row.foreign:.1%}", " ".join(f"{value:.4g}" for value in row.runs), row.figure,
        ))  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    body = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    note = ["* some readings were disturbed by other processes in every try"] if any(row.disturbed for row in rows) else []
    return "\n".join([*head, "", *body, *note])


def _span(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def _peer(text: str) -> tuple[str, str]:
    name, found, url = text.partition("=")
    if not found or not url.startswith("http"):
        raise argparse.ArgumentTypeError("expected NAME=URL")
    return name, url.rstrip("/").removesuffix("/v1")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", default="smollm2-135m-instruct")
    add("--dtype", default="bfloat16")
    add("--sections", default=",".join(SECTIONS), help=f"of {', '.join(SECTIONS)}")
    add("--contenders", default=",".join(CONTENDERS), help=f"of {', '.join(CONTENDERS)}, besides the peers")
    add("--peer", type=_peer, action="append", default=[], metavar="NAME=URL", help="a running OpenAI-compatible server")
    add("--peer-body", type=json.loads, default={}, help="JSON merged into requests to peers")
    add("--runs", type=int, default=5)
    add("--concurrency", type=int, default=32, help="requests at once, and the batch size of transformers")
    add("--input", type=int, default=128)
    add("--output", type=int, default=128)
    add("--mixed-requests", type=int, default=96)
    add("--mixed-input", type=_span, default=(16, 512), metavar="LOW-HIGH")
    add("--mixed-output", type=_span, default=(16, 256), metavar="LOW-HIGH")
    add("--prefix-tokens", type=int, default=500)
    add("--prefix-new", type=int, default=100)
    add("--prefix-repeats", type=int, default=5, help="requests averaged in one reading")
    add("--foreign-limit", type=float, default=3.0, help="percent of the cores that other processes may take")
    add("--tries", type=int, default=4, help="readings taken at most until one is undisturbed")
    add("--calm", type=float, default=60.0, help="seconds to wait for idle cores before each reading; 0 = do not wait")
    add("--nice", type=int, default=0, help="change of priority; -15 (as root) disturbs the readings less")
    add("--json", action="store_true", help="print JSON instead of the table")
    return parser.parse_args()


@contextlib.contextmanager
def contenders(args: argparse.Namespace, wanted: set[str]) -> Iterator[Bench]:
    """Load and start whatever takes part."""
    bench = Bench(args, prompt_tokenizer(args.model))
    with contextlib.ExitStack() as stack:
        if "llm" in wanted:
            say("loading Headway in this process")
            bench.llm = InProcess(args.model, args.dtype, args.concurrency)
        if "http" in wanted:
            say("starting headway serve")
            url, _, _ = stack.enter_context(headway_server(args.model, args.dtype))
            bench.servers[HTTP] = OverHttp(url, "bench", bench.tokenizer)
        for name, url in args.peer:
            bench.servers[name] = OverHttp(url, asyncio.run(first_model(url, {}, 10)), bench.tokenizer, args.peer_body)
        if "transformers" in wanted:
            say("loading transformers")
            bench.generate = Transformers(args.model, args.dtype)
        yield bench


def main() -> int:
    args = parse()
    sections = [name for name in args.sections.split(",") if name]
    wanted = set(args.contenders.split(","))
    if set(sections) - set(SECTIONS) or wanted - set(CONTENDERS) - {""}:
        say(f"sections are {', '.join(SECTIONS)}; contenders are {', '.join(CONTENDERS)}")
        return 2
    if args.nice:
        os.nice(args.nice)
    if not set(sections) & {"concurrent", "mixed"}:
        wanted -= {"transformers"}
    try:
        with contenders(args, wanted) as bench:
            for section in sections:
                getattr(bench, section)()
            told = conditions(args, {name: peer for name, peer in bench.servers.items() if name != HTTP})
    except Failed as error:
        say(f"failed: {error}")
        return 1
    print(json.dumps({"conditions": told, "rows": [asdict(row) for row in bench.rows]}) if args.json else table(told, bench.rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
