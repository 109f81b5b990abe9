"""How far a simulation is from a real server: step times fitted on one load, another load measured and simulated, on one replica and on two.

    python benchmarks/simulation.py
    python benchmarks/simulation.py --replicas 1 --requests 20 --prompt 32-64 --output 4-8 --rate 4      (does it run?)

For each number of replicas: that many `headway serve` processes, each on cores of its own where there are enough, write step records under
the first load; the loads that are predicted have other seeds, other lengths and another rate, and go to them in turn, at times that are the
same in the simulation. The fit is made with as many replicas running as it is used for: on one machine they share memory and caches, and with the client
also cores. Prints measured, simulated and their ratio. Stop everything else before.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from contenders import Failed, headway_server
from quiet import busy_seconds, own_seconds

from headway.bench.measures import Exchange
from headway.bench.openai_client import Target, exchange, session
from headway.bench.prompts import Prompt, RandomText
from headway.bench.simulation.fleet import Fleet, simulate
from headway.bench.simulation.outcome import Promises, outcome
from headway.bench.simulation.replica_limits import ReplicaLimits
from headway.bench.simulation.request_trace import RequestTrace, request_trace
from headway.bench.simulation.step_fit import fit_step_times, read_step_records
from headway.bench.simulation.step_times import StepTimes
from headway.bench.tokenizer import prompt_tokenizer

BLOCK = 16


@dataclass(frozen=True)
class Load:
    """One load: lengths drawn evenly from (low, high), Poisson arrivals at `rate` per second and replica, and `burst` more per replica that come
    all at once ten seconds after the last of these."""

    requests: int
    rate: float
    prompt: tuple[int, int]
    output: tuple[int, int]
    seed: int
    burst: int = 0

    def trace(self, replicas: int) -> RequestTrace:
        rng = random.Random(self.seed)
        count = self.requests * replicas
        arrivals = [0.0]
        while len(arrivals) < count:
            arrivals.append(arrivals[-1] + (0.0 if math.isinf(self.rate) else rng.expovariate(self.rate * replicas)))
        arrivals += [arrivals[-1] + 10.0] * (self.burst * replicas)
        return request_trace(arrivals, [rng.randint(*self.prompt) for _ in arrivals], [rng.randint(*self.output) for _ in arrivals])


def prompts(trace: RequestTrace, tokenizer: Any, seed: int) -> list[Prompt]:
    """Random texts of the lengths of the trace."""
    texts = RandomText(tokenizer, random.Random(f"texts {seed}"))
    made = [texts.make(int(length)) for length in trace.prompt]
    return [Prompt(text, tuple(tokenizer.encode(text, add_special_tokens=False)), int(output)) for text, output in zip(made, trace.output, strict=True)]


def as_asked(trace: RequestTrace, tokenizer: Any, seed: int) -> tuple[RequestTrace, list[Prompt]]:
    """The trace with the prompts as they came out: a text does not always encode to the wanted length."""
    asked = prompts(trace, tokenizer, seed)
    return request_trace(trace.arrival, [len(prompt.token_ids) for prompt in asked], trace.output), asked


async def replay(urls: Sequence[str], trace: RequestTrace, asked: Sequence[Prompt]) -> list[Exchange]:
    """Request i goes to server i modulo their number, at its time. The start of each exchange becomes its due time."""
    targets = [Target(url, "openai", "bench", "/v1/completions", body={"temperature": 0, "ignore_eos": True}) for url in urls]
    async with session() as client:
        begin = time.perf_counter() + 0.2

        async def one(index: int, prompt: Prompt, due: float) -> Exchange:
            await asyncio.sleep(max(0.0, begin + due - time.perf_counter()))
            done = await exchange(client, targets[index % len(targets)], prompt)
            late = done.start - begin - due
            done.start, done.ttft, done.latency = due, done.ttft + late, done.latency + late
            return done

        return await asyncio.gather(*(one(i, prompt, float(due)) for i, (prompt, due) in enumerate(zip(asked, trace.arrival, strict=True))))


@contextlib.contextmanager
def servers(args: argparse.Namespace, count: int, folder: Path) -> Iterator[tuple[list[str], list[Path]]]:
    """`count` servers and the files of their step records. Each has 1 / count of the cores when there are as many."""
    cores = sorted(os.sched_getaffinity(0))
    share = max(1, len(cores) // max(count, args.split))
    flags = [
        "--num-gpu-blocks-override", str(args.blocks), "--max-num-seqs", str(args.max_num_seqs), "--max-num-batched-tokens", str(args.max_num_batched_tokens),
        "--no-enable-prefix-caching", "--max-model-len", str(args.max_model_len),
    ]  # fmt: skip
    records = [folder / f"steps-{count}-{i}.jsonl" for i in range(count)]
    urls = []
    with contextlib.ExitStack() as stack:
        for i, path in enumerate(records):
            os.environ["HEADWAY_STEP_RECORDS"] = str(path)
            os.sched_setaffinity(0, cores[i * share % len(cores) :][:share])  # inherited
            try:
                urls.append(stack.enter_context(headway_server(args.model, args.dtype, *flags))[0])
            finally:
                os.sched_setaffinity(0, cores)
                del os.environ["HEADWAY_STEP_RECORDS"]
        yield urls, records


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def fitted(records: Sequence[Path], skip: Sequence[int], upto: Sequence[int]) -> StepTimes:
    """From the steps of the fit load alone: behind those of the warm-up, before those of the load that is predicted."""
    works, seconds = [], []
    for path, first, last in zip(records, skip, upto, strict=True):
        some, took = read_step_records(path)
        works += some[first:last]
        seconds += took[first:last]
    return fit_step_times(works, seconds)


def with_request_seconds(times: StepTimes, limits: ReplicaLimits, trace: RequestTrace, done: Sequence[Exchange], replicas: int) -> StepTimes:
    """What a request takes outside of steps: the median of what the simulation of the fit load lacks in time to the first token."""
    first = simulate(trace, Fleet(times, limits, replicas)).book.first
    lacks = [each.ttft - (first[i] - trace.arrival[i]) for i, each in enumerate(done)]
    return StepTimes(times.by_tokens, times.by_sampled, times.chunk, times.pair, times.context, max(0.0, float(np.median(lacks))), times.origin)


def measured(done: Sequence[Exchange]) -> dict[str, float]:
    if errors := {each.error for each in done if each.error}:
        raise Failed(f"requests failed: {sorted(errors)[:3]}")
    seconds = max(each.start + each.latency for each in done)
    gaps = [gap for each in done for gap in each.itls]
    found = {"output tokens/s": sum(each.output_tokens for each in done) / seconds}
    for percent in (50, 90, 99):
        found[f"TTFT p{percent} ms"] = 1e3 * float(np.percentile([each.ttft for each in done], percent))
        found[f"ITL p{percent} ms"] = 1e3 * float(np.percentile(gaps, percent)) if gaps else math.nan
        found[f"E2E p{percent} ms"] = 1e3 * float(np.percentile([each.latency for each in done], percent))
    return found


def simulated(trace: RequestTrace, fleet: Fleet) -> dict[str, float]:
    told = outcome(trace, fleet, simulate(trace, fleet), Promises())
    found = {"output tokens/s": told["output_tokens_per_second"]}
    for percent in (50, 90, 99):
        for name, key in (("TTFT", "ttft"), ("ITL", "itl"), ("E2E", "e2e")):
            found[f"{name} p{percent} ms"] = 1e3 * (told[key][f"p{percent}"] or 0.0)
    return found


def compare(args: argparse.Namespace, replicas: int, tokenizer: Any, folder: Path) -> dict[str, Any]:
    """Fit on the first load, predict the second, measure it."""
    limits = ReplicaLimits(args.blocks, BLOCK, args.max_num_batched_tokens, args.max_num_seqs, enable_prefix_caching=False)
    first = Load(args.fit_requests, args.fit_rate, args.fit_prompt, args.fit_output, args.seed, args.burst)
    loads = {
        "fit": first,
        "steady": Load(args.requests, args.rate, args.prompt, args.output, args.seed + 1),
        "burst": Load(args.burst, math.inf, args.prompt, args.output, args.seed + 2),
    }
    made = {name: as_asked(load.trace(replicas), tokenizer, load.seed) for name, load in loads.items() if load.requests}
    fit_trace, fit_asked = made["fit"]
    say(f"{replicas} replica(s): starting")
    with servers(args, replicas, folder) as (urls, records):
        warm = [Prompt(prompt.text, prompt.token_ids, min(4, prompt.output_len)) for prompt in fit_asked[: 4 * replicas]]
        asyncio.run(replay(urls, request_trace([0.0] * len(warm), [1] * len(warm), [1] * len(warm)), warm))
        skip = [lines(path) for path in records]
        say(f"fit load: {len(fit_trace)} requests over {fit_trace.seconds:.0f} s")
        fit_done = asyncio.run(replay(urls, fit_trace, fit_asked))
        time.sleep(1)  # the last lines are written
        times = fitted(records, skip, [lines(path) for path in records])
        times = with_request_seconds(times, limits, fit_trace, fit_done, replicas)
        say(f"fit: {json.dumps(times.origin)}, {times.request_seconds * 1e3:.1f} ms per request outside of steps")
        fleet = Fleet(times, limits, replicas)
        told = [side_by_side("fit", fit_trace, fit_done, fleet, 0.0)]
        for name, (trace, asked) in made.items():
            if name == "fit":
                continue
            say(f"load to predict, {name}: {len(trace)} requests over {trace.seconds:.0f} s")
            others, begun = own_seconds() - busy_seconds(), time.perf_counter()
            done = asyncio.run(replay(urls, trace, asked))
            others += busy_seconds() - own_seconds()
            told.append(side_by_side(name, trace, done, fleet, max(0.0, others) / (time.perf_counter() - begun) / (os.cpu_count() or 1)))
    return {"replicas": replicas, "fit": times.origin, "request_seconds": times.request_seconds, "loads": told}


def side_by_side(name: str, trace: RequestTrace, done: Sequence[Exchange], fleet: Fleet, foreign: float) -> dict[str, Any]:
    real, made = measured(done), simulated(trace, fleet)
    rows = {key: {"measured": value, "simulated": made[key], "ratio": made[key] / value if value else math.nan} for key, value in real.items()}
    return {"load": name, "requests": len(trace), "foreign_cpu_share": foreign, "rows": rows}


def show(found: dict[str, Any]) -> None:
    for load in found["loads"]:
        title = "fit load, for comparison" if load["load"] == "fit" else f"{load['load']} load, not fitted to"
        print(f"\n{found['replicas']} replica(s), {title}: {load['requests']} requests, other processes took {load['foreign_cpu_share']:.1%} of the cores")
        print(f"{'':18}{'measured':>12}{'simulated':>12}{'ratio':>8}")
        for name, row in load["rows"].items():
            print(f"{name:18}{row['measured']:12.2f}{row['simulated']:12.2f}{row['ratio']:8.3f}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _span(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", default="smollm2-135m-instruct")
    add("--dtype", default="bfloat16")
    add("--replicas", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2])
    add("--split", type=int, default=2, help="parts that the cores are divided into at least: one replica has as much as one of two, and the client the rest")
    add("--requests", type=int, default=200, help="per replica, of the load that is predicted")
    add("--rate", type=float, default=1.2, help="requests per second and replica")
    add("--burst", type=int, default=48, help="per replica, of a third load that comes all at once and shows the highest throughput, and at the end of the fit load; 0 = none")
    add("--prompt", type=_span, default=(100, 700), metavar="LOW-HIGH")
    add("--output", type=_span, default=(8, 72), metavar="LOW-HIGH")
    add("--fit-requests", type=int, default=200)
    add("--fit-rate", type=float, default=1.0)
    add("--fit-prompt", type=_span, default=(16, 1000), metavar="LOW-HIGH")
    add("--fit-output", type=_span, default=(1, 100), metavar="LOW-HIGH")
    add("--blocks", type=int, default=1024, help=f"KV blocks of {BLOCK} tokens of each replica")
    add("--max-num-seqs", type=int, default=32)
    add("--max-num-batched-tokens", type=int, default=512)
    add("--max-model-len", type=int, default=2048)
    add("--seed", type=int, default=0)
    add("--nice", type=int, default=0, help="change of priority, inherited by the servers; -15 (as root) disturbs the figures less")
    add("--json", action="store_true", help="print JSON instead of tables")
    return parser.parse_args()


def main() -> int:
    args = parse()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # the servers end with this process
    if args.nice:
        os.nice(args.nice)
    tokenizer = prompt_tokenizer(args.model)
    results = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for replicas in args.replicas:
                results.append(compare(args, replicas, tokenizer, Path(folder)))
                if not args.json:
                    show(results[-1])
    except Failed as error:
        say(f"failed: {error}")
        return 1
    if args.json:
        print(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
