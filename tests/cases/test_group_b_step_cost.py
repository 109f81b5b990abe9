"""Group B, B11: what a step costs the host does not grow with the text that is already there. Calls and elements are
counted; seconds are in benchmarks/step_cost.py."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from headway.engine.outputs import OutputKind
from tests.engine.scripted_core import ScriptedCore, say

EARLY, LATE = 200, 20_000
PENALTIES = {"repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.1}
TEXT = "The quick brown fox jumps over the lazy dog. "


@dataclass(frozen=True)
class Cost:
    """Calls of Python and C functions in one step; torch operators, and numbers that these read, in the next."""

    calls: int
    operators: int
    elements: int


class CountedElements(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operators = self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operators += 1
        self.elements += sum(a.numel() for a in args if isinstance(a, torch.Tensor))
        return func(*args, **(kwargs or {}))


def cost_of_step(world: ScriptedCore) -> Cost:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        world.core.step()
    finally:
        sys.setprofile(None)
    with CountedElements() as counted:
        world.core.step()
    return Cost(calls, counted.operators, counted.elements)


def grown(requests: int, **params: Any) -> tuple[Cost, Cost]:
    """The cost of a step after 200 and after 20,000 tokens of each request, all with stop strings that nearly match."""
    world = ScriptedCore(
        say(TEXT * (LATE // len(TEXT) + 50)), num_blocks=1 + requests * 1300, block_size=16, budget=64, max_model_len=LATE + 200
    )
    for i in range(requests):
        world.add(
            str(i), "Hi", max_tokens=LATE + 100, ignore_eos=True, stop=["lazy cat", "The quick brown foxes", "\n\n"],
            output_kind=OutputKind.DELTA, **params,
        )  # fmt: skip
    costs = []
    for target in (EARLY, LATE):
        while world.core.steps < target:
            world.core.step()
        windows = [cost_of_step(world) for _ in range(16)]  # 32 steps: a block is begun every 16 tokens
        costs.append(Cost(*(sum(getattr(c, field) for c in windows) for field in ("calls", "operators", "elements"))))
    return costs[0], costs[1]


CASES = [
    pytest.param(n, how, marks=[] if n == 1 and how else pytest.mark.long, id=f"{n}_{'penalties' if how else 'plain'}")
    for n in (1, 8)
    for how in ({}, PENALTIES)
]


@pytest.mark.parametrize(("requests", "penalties"), CASES)
@pytest.mark.timeout(600)
def test_b11_a_late_step_costs_what_an_early_one_costs(requests: int, penalties: dict[str, float]) -> None:
    early, late = grown(requests, **penalties)
    assert late.calls <= 1.1 * early.calls
    assert late.operators <= 1.1 * early.operators
    assert late.elements <= 1.1 * early.elements


def test_b11_penalties_cost_a_fixed_amount_for_each_sequence_of_the_batch() -> None:
    def added(requests: int) -> tuple[int, int]:
        costs = []
        for params in ({}, PENALTIES):
            world = ScriptedCore(say(TEXT * 20))
            for i in range(requests):
                world.add(str(i), "Hi", max_tokens=300, ignore_eos=True, **params)
            for _ in range(20):
                world.core.step()
            costs.append(cost_of_step(world))
        return costs[1].operators - costs[0].operators, costs[1].elements - costs[0].elements

    (operators, elements), (_, many) = added(1), added(8)
    assert 0 < operators < 60
    assert elements > 0
    assert many <= 8 * elements
