"""Group B, B06: a long prefill does not block short requests, nor they it. Steps are counted."""

from __future__ import annotations

import logging
import re

import pytest

from headway.engine.outputs import OutputKind
from tests.engine.scripted_core import ScriptedCore, say

BUDGET, LONG, BLOCK = 256, 4096, 16


def make_world(**limits: int) -> ScriptedCore:
    return ScriptedCore(say("x" * 500), num_blocks=1 + 400, block_size=BLOCK, budget=BUDGET, max_model_len=8192, **limits)


def steps_to_first_token(world: ScriptedCore, *names: str, limit: int = 100) -> dict[str, int]:
    found: dict[str, int] = {}
    for step in range(1, limit):
        for output in world.core.step():
            found.setdefault(output.request_id, step)
        if all(name in found for name in names):
            return found
    raise AssertionError(f"no first token in {limit} steps: {found}")


@pytest.mark.parametrize("threshold", [0, 64])
def test_b06_alone_a_long_prompt_takes_the_whole_budget(threshold: int) -> None:
    world = make_world(long_prefill_threshold=threshold)
    world.add("L", [7] * LONG, max_tokens=1, ignore_eos=True)
    assert steps_to_first_token(world, "L") == {"L": LONG // BUDGET}
    assert {s.scheduled_tokens for s in world.steps} == {BUDGET}


@pytest.mark.parametrize("threshold", [0, 64])
def test_b06_short_prompts_and_a_stream_beside_a_long_prompt(threshold: int, caplog: pytest.LogCaptureFixture) -> None:
    world = make_world(long_prefill_threshold=threshold)
    world.add("stream", "hello", max_tokens=400, ignore_eos=True, output_kind=OutputKind.DELTA)
    world.core.step()
    world.add("L", [7] * LONG, max_tokens=4, ignore_eos=True, output_kind=OutputKind.DELTA)
    with caplog.at_level(logging.DEBUG, "headway.engine.core"):
        world.core.step()
        for name in ("a", "b", "c"):
            world.add(name, [ord(name)] * 10, max_tokens=3, ignore_eos=True, output_kind=OutputKind.DELTA)
        first: dict[str, int] = {}
        for step in range(1, 40):
            outputs = {o.request_id for o in world.core.step()}
            assert "stream" in outputs, "the decoding stream misses a step"
            for name in outputs:
                first.setdefault(name, step)
            if "L" in first:
                break
    assert max(first[name] for name in "abc") <= 3
    assert first["L"] + 1 <= round(LONG / BUDGET * 1.1), "the long prompt takes much longer than alone"
    traces = [r.getMessage() for r in caplog.records]
    assert re.match(r"step 2: 256 tokens, 0 preempted: stream\.0\[5:6\]\* L\.0\[0:255\]$", traces[0])
    beside = re.match(r"step 3: 256 tokens, 0 preempted: stream\.0\[6:7\]\* L\.0\[255:(\d+)\] a\.0\[0:10\]\* b\.0\[0:10\]\* c\.0\[0:10\]\*$", traces[1])
    assert beside is not None, traces[1]
    assert int(beside[1]) == 255 + BUDGET - 1 - 30


def test_b06_with_a_threshold_a_long_prompt_leaves_room_for_those_that_fill_it() -> None:
    """Many middling prompts: with the cap the long one takes 64 tokens a step, without it what halving leaves."""
    world = make_world(long_prefill_threshold=64)
    world.add("L", [7] * LONG, max_tokens=1, ignore_eos=True)
    for i in range(6):
        world.add(f"m{i}", [20 + i] * 90, max_tokens=1, ignore_eos=True)
    first = steps_to_first_token(world, "L", *(f"m{i}" for i in range(6)))
    assert max(first[f"m{i}"] for i in range(6)) <= 4
    assert first["L"] <= -(-(LONG + 6 * 90) // BUDGET)
