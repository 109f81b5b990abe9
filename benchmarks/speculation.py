"""What speculative decoding gains and costs: the same requests with and without it, in one process, taking turns.

    python benchmarks/speculation.py
    python benchmarks/speculation.py --methods ngram --requests 1 4 --runs 9
    python benchmarks/speculation.py --methods draft_model      # a truncated copy of the model drafts: correctness, not speed

Two kinds of text: `copy`, a table that the prompt holds twice and begins a third time (greedy), and `random`, token ids drawn at random with
an answer sampled at temperature 1. Prints medians of generated tokens per second, the ratio to the engine without speculation, and how many
of the proposed tokens were accepted. Every run has prompts of its own; within a run all engines get the same.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from quiet import add_reading_options, alternate, reading_options

from headway import LLM, SamplingParams
from headway.engine.core import Observers
from headway.telemetry.stats import StepStats

NAMES = ("Anna", "Boris", "Chen", "Dora", "Emil", "Fatima", "Georg", "Hana", "Ivan", "Julia", "Karim", "Lena")
TOWNS = ("Basel", "Cairo", "Delhi", "Essen", "Fulda", "Genoa", "Hanoi", "Izmir", "Jena", "Kyoto", "Lima", "Malmo")


def copy_prompt(dice: random.Random) -> dict[str, str]:
    rows = [f"{name}, {dice.randrange(18, 90)} years, from {dice.choice(TOWNS)}, number {dice.randrange(1000, 9999)}\n" for name in dice.sample(NAMES, 12)]
    table = "".join(rows)
    return {"prompt": f"The table:\n{table}\nThe same table again:\n{table}\nThe same table again:\n{rows[0]}"}


def random_prompt(dice: random.Random) -> dict[str, list[int]]:
    return {"prompt_token_ids": [dice.randrange(1000, 40_000) for _ in range(128)]}


GOALS = {("copy", "ngram"): 1.5, ("random", "ngram"): 0.95}  # times the speed without, for a single request and for any number of them
KINDS: dict[str, tuple[Callable[[random.Random], Any], float]] = {"copy": (copy_prompt, 0.0), "random": (random_prompt, 1.0)}


class Contender:
    """An engine, and what its drafts were."""

    def __init__(self, arguments: argparse.Namespace, config: dict[str, Any]):
        self.proposed = self.accepted = 0
        self.llm = LLM(
            arguments.model, dtype=arguments.dtype, max_model_len=2048, kv_cache_memory_bytes=512 << 20, enable_prefix_caching=False,
            speculative_config=config, observers=Observers(on_step=self._count),
        )  # fmt: skip

    def _count(self, step: StepStats) -> None:
        for proposed, accepted in step.drafts:
            self.proposed += proposed
            self.accepted += accepted

    def speed(self, kind: str, requests: int, tokens: int, run: int) -> float:
        """Generated tokens per second, prompts not counted."""
        make, temperature = KINDS[kind]
        dice = random.Random(f"{kind} {run}")
        prompts = [make(dice) for _ in range(requests)]
        params = SamplingParams(temperature=temperature, seed=run, max_tokens=tokens, ignore_eos=True)
        start = time.perf_counter()
        outputs = self.llm.generate(prompts, params, use_tqdm=False)
        seconds = time.perf_counter() - start
        first = max(o.metrics["first_token"] - o.metrics["scheduled"] for o in outputs if o.metrics)
        return requests * (tokens - 1) / (seconds - first)


def truncated(model: str, layers: int, folder: Path) -> Path:
    """The first layers of the model, as a model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from headway.artifacts.inspect import inspect

    path = inspect(model).path
    place: dict[str, Any] = {"gguf_file": path.name} if path.is_file() else {}
    home = path.parent if path.is_file() else path
    whole = AutoModelForCausalLM.from_pretrained(home, **place)
    config = type(whole.config)(**{**whole.config.to_dict(), "num_hidden_layers": layers, "layer_types": None, "quantization_config": None})
    short = type(whole)(config)
    short.load_state_dict(whole.state_dict(), strict=False)
    short.save_pretrained(folder)
    AutoTokenizer.from_pretrained(home, **place).save_pretrained(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--methods", nargs="+", default=["ngram", "suffix"], choices=["ngram", "suffix", "draft_model"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--requests", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--tokens", type=int, default=128, help="generated for each request")
    parser.add_argument("--drafts", type=int, default=8, help="most tokens drafted at once")
    parser.add_argument("--draft-layers", type=int, default=4, help="layers of the truncated model that drafts")
    add_reading_options(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        configs: dict[str, dict[str, Any]] = {"off": {}}
        for method in arguments.methods:
            configs[method] = {"method": method, "num_speculative_tokens": arguments.drafts}
            if method == "draft_model":
                configs[method]["model"] = str(truncated(arguments.model, arguments.draft_layers, Path(folder)))
        contenders = {name: Contender(arguments, config) for name, config in configs.items()}
        torch.set_num_threads(arguments.threads)
        print(f"{arguments.model} {arguments.dtype}, {arguments.threads} threads, in process, {arguments.tokens} tokens a request, medians of {arguments.runs}")
        missed = [name for kind in arguments.kinds for n in arguments.requests for name in measure(arguments, contenders, kind, n)]
    if missed:
        print("missed:", ", ".join(missed))
        raise SystemExit(int(arguments.strict))


def measure(arguments: argparse.Namespace, contenders: dict[str, Contender], kind: str, requests: int) -> list[str]:
    """Prints a table; returns the goals that were missed."""
    for contender in contenders.values():
        contender.speed(kind, requests, 16, -1)  # what is done once is done
        contender.proposed = contender.accepted = 0
    works = [(name, partial(c.speed, kind, requests, arguments.tokens)) for name, c in contenders.items()]
    readings = {r.name: r for r in alternate(works, arguments.runs, **reading_options(arguments))}
    plain, missed = readings["off"].median, []
    for name, reading in readings.items():
        c = contenders[name]
        share = f"{c.accepted / c.proposed:5.1%} of {c.proposed} drafted tokens accepted" if c.proposed else ""
        disturbed = f"  ({reading.disturbed} readings disturbed)" if reading.disturbed else ""
        print(f"{kind:6} {requests:3} requests  {name:11} {reading.median:7.1f} tokens/s  {reading.median / plain:5.2f}x  {share}{disturbed}")
        goal = GOALS.get((kind, name))
        if goal is not None and (kind == "random" or requests == 1) and reading.median < goal * plain:
            missed.append(f"{kind}, {requests} requests, {name}: {reading.median / plain:.2f} instead of {goal}")
    return missed


if __name__ == "__main__":
    main()
