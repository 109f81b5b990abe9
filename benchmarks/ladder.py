"""Formats and engines over HTTP, one after the other, at 1, 8 and 32 requests at once: throughput, first tokens, gaps, prefill.

    python benchmarks/ladder.py --dense DIR              Headway in bfloat16 and int8 from DIR, and from its 4-bit GGUF
    python benchmarks/ladder.py --dense DIR --peer llama-q4=http://127.0.0.1:8103 --peer-body '{"cache_prompt": false}'

All servers run at the same time and take turns; a server that nobody asks uses no core. Readings during which other processes took more
than 3 % of the cores are taken again. Prompts are random tokens, new in each run, the same for all; greedy, without end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from contenders import Failed, OverHttp, headway_server
from quiet import Readings, alternate, tree_rss

from headway.bench.measures import percentile
from headway.bench.prompts import Prompt, RandomText
from headway.bench.serve import first_model
from headway.bench.tokenizer import prompt_tokenizer

# name -> which of the two models, flags of `headway serve`
FORMATS = {"headway-bf16": ("dense", ()), "headway-int8": ("dense", ("--quantization", "int8")), "headway-gguf": ("gguf", ())}
LIMITS = {"bf16": 167.0, "int8": 330.0, "gguf": 465.0}  # output tokens/s at one request: 45 GB/s over the bytes of the weights


@dataclass
class Figures:
    """What the runs of one server at one concurrency came to. Seconds."""

    output: list[float] = field(default_factory=list)
    ttft: list[float] = field(default_factory=list)
    itl: list[float] = field(default_factory=list)


def prompts(tokenizer: Any, count: int, size: int, wanted: int, seed: str) -> list[Prompt]:
    texts = RandomText(tokenizer, random.Random(seed))
    made = [texts.make(size) for _ in range(count)]
    return [Prompt(text, tuple(tokenizer.encode(text, add_special_tokens=False)), wanted) for text in made]


def measure(args: argparse.Namespace, servers: dict[str, OverHttp], tokenizer: Any) -> list[dict[str, Any]]:
    rows = []
    pids = [pid for server in servers.values() if (pid := server.pid)]
    for concurrency in args.concurrency:
        count = max(4, concurrency)
        figures = {name: Figures() for name in servers}

        def work(run: int, name: str, concurrency: int = concurrency, count: int = count, figures: dict[str, Figures] = figures) -> float:
            made = prompts(tokenizer, count, args.input, args.output, f"{concurrency} {run}")
            done = servers[name].exchanges(made, concurrency)
            figures[name].ttft += [record.ttft for record in done.records]
            figures[name].itl += [gap for record in done.records for gap in record.itls]
            figures[name].output.append(done.output_tokens_per_second)
            return done.output_tokens_per_second

        readings = turns(args, servers, work, pids)
        rows += [{"figure": f"{args.input} in, {args.output} out", "concurrency": concurrency, **_told(r, figures[r.name])} for r in readings]

    def prefill(run: int, name: str) -> float:
        first = [servers[name].first_token_seconds(p) for p in prompts(tokenizer, 3, args.prefill, 1, f"prefill {run}")]
        return args.prefill / median(first)

    rows += [
        {"figure": f"prefill {args.prefill}, input tokens/s", "concurrency": 1, **_told(r, Figures())} for r in turns(args, servers, prefill, pids)
    ]
    return rows


def turns(args: argparse.Namespace, servers: dict[str, OverHttp], work: Any, pids: list[int]) -> list[Readings]:
    for name in servers:
        work(-1, name)
    return alternate(
        [(name, lambda run, name=name: work(run, name)) for name in servers], args.runs, others=pids, say=say,
        foreign_limit=args.foreign_limit / 100, tries=args.tries, calm=args.calm,
    )  # fmt: skip


def _told(reading: Readings, figures: Figures) -> dict[str, Any]:
    told: dict[str, Any] = {
        "server": reading.name, "median": round(reading.median, 1), "runs": [round(value, 1) for value in reading.values],
        "foreign": round(max(reading.foreign, default=0.0), 3), "disturbed": reading.disturbed,
    }  # fmt: skip
    for name, values in (("ttft_ms", figures.ttft), ("itl_ms", figures.itl)):
        if values:
            told[name] = {f"p{p}": round(percentile(values, p) * 1000, 1) for p in (50, 99)}
    return told


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--gguf", default="smollm2-135m-instruct", help="a GGUF file or a reference to one; also the tokenizer")
    add("--dense", help="the same weights in a folder of bfloat16 safetensors, for bf16 and int8")
    add("--formats", default=",".join(FORMATS), help=f"of {', '.join(FORMATS)}")
    add("--peer", action="append", default=[], metavar="NAME=URL", help="a running OpenAI-compatible server")
    add("--peer-body", type=json.loads, default={}, help="JSON merged into requests to peers")
    add("--concurrency", type=lambda text: [int(x) for x in text.split(",")], default=[1, 8, 32])
    add("--input", type=int, default=128)
    add("--output", type=int, default=128)
    add("--prefill", type=int, default=512)
    add("--runs", type=int, default=3)
    add("--foreign-limit", type=float, default=3.0)
    add("--tries", type=int, default=3)
    add("--calm", type=float, default=60.0)
    add("--json", action="store_true")
    return parser.parse_args()


def main() -> int:
    args = parse()
    tokenizer = prompt_tokenizer(args.gguf)
    servers: dict[str, OverHttp] = {}
    starts: dict[str, float] = {}
    memory: dict[str, float] = {}
    try:
        with contextlib.ExitStack() as stack:
            for name in filter(None, args.formats.split(",")):
                say(f"starting {name}")
                kind, flags = FORMATS[name]
                model = {"dense": args.dense, "gguf": args.gguf}[kind]
                if model is None:
                    raise Failed(f"{name} needs --dense")
                url, pid, seconds = stack.enter_context(headway_server(model, "bfloat16", *flags))
                servers[name], starts[name] = OverHttp(url, "bench", tokenizer), seconds
                memory[name] = tree_rss(pid) / 2**20
            for peer in args.peer:
                name, _, url = peer.partition("=")
                servers[name] = OverHttp(url, asyncio.run(first_model(url, {}, 10)), tokenizer, args.peer_body)
            rows = measure(args, servers, tokenizer)
            memory |= {name: tree_rss(pid) / 2**20 for name, server in servers.items() if (pid := server.pid)}
    except Failed as error:
        say(f"failed: {error}")
        return 1
    told = {"start_s": starts, "rss_mib": memory, "nice": os.nice(0), "rows": rows}
    print(json.dumps(told, indent=1) if args.json else table(told))
    return 0


def table(told: dict[str, Any]) -> str:
    lines = [f"{'figure':28}{'at once':>8}  {'server':22}{'median':>9}  {'of limit':>8}  {'TTFT p50/p99':>16}  {'ITL p50/p99':>14}  foreign  runs"]
    for row in told["rows"]:
        limit = LIMITS.get(row["server"].rpartition("-")[2]) if row["concurrency"] == 1 and "prefill" not in row["figure"] else None
        share = "" if limit is None else f"{row['median'] / limit:.0%}"
        ttft, itl = ("/".join(f"{x:.1f}" for x in row[key].values()) if key in row else "" for key in ("ttft_ms", "itl_ms"))
        mark = "*" if row["disturbed"] else ""
        lines.append(
            f"{row['figure']:28}{row['concurrency']:>8}  {row['server']:22}{row['median']:>8.1f}{mark or ' '}  {share:>8}  {ttft:>16}  {itl:>14}"
            f"  {row['foreign']:>6.1%}  {row['runs']}"
        )
    lines += [f"start {name}: {seconds:.1f} s" for name, seconds in told["start_s"].items()]
    return "\n".join([*lines, *(f"memory {name}: {mib:.0f} MiB" for name, mib in told["rss_mib"].items())])


if __name__ == "__main__":
    sys.exit(main())
