"""What a step costs the host, without a model: microseconds for a token after 200 tokens and after 20,000.

    PYTHONPATH=. python benchmarks/step_cost.py

A scripted model stands for the real one (tests/engine/scripted_core.py); scheduler, sampler, detokenizer and stop strings are real.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from tests.engine.scripted_core import ScriptedCore, say

from headway.engine.outputs import OutputKind

EARLY, LATE, WINDOW = 200, 20_000, 200
TEXT = "The quick brown fox jumps over the lazy dog. "
PENALTIES = {"repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.1}


def microseconds(world: ScriptedCore, requests: int) -> float:
    """Median over a window of steps, for each token."""
    taken = []
    for _ in range(WINDOW):
        start = time.perf_counter()
        world.core.step()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) / requests * 1e6


def measure(requests: int, params: dict[str, Any]) -> tuple[float, float]:
    world = ScriptedCore(
        say(TEXT * (LATE // len(TEXT) + 50)), num_blocks=1 + requests * 1300, block_size=16, max_model_len=LATE + 1000
    )
    for i in range(requests):
        world.add(
            str(i), "Hi", max_tokens=LATE + 900, ignore_eos=True, output_kind=OutputKind.DELTA,
            stop=["lazy cat", "The quick brown foxes", "\n\n"], **params,
        )  # fmt: skip
    found = []
    for target in (EARLY, LATE):
        while world.core.steps < target:
            world.core.step()
        found.append(microseconds(world, requests))
    return found[0], found[1]


if __name__ == "__main__":
    print("requests  penalties  us/token at 200  at 20,000  ratio")
    for count in (1, 8):
        for name, params in (("no", {}), ("yes", PENALTIES)):
            early, late = measure(count, params)
            print(f"{count:8}  {name:9}  {early:15.1f}  {late:9.1f}  {late / early:5.2f}")
