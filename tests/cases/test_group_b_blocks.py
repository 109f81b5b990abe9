"""Group B, who holds which KV blocks: aborts (B01), requests that can never fit (B04), preemption (B05)."""

from __future__ import annotations

import logging
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headway import LLM, SamplingParams
from headway.engine.admission import admit
from headway.engine.core import Observers
from headway.engine.outputs import OutputKind, RequestOutput
from headway.errors import CapacityError
from headway.telemetry.metrics import EngineMetrics
from headway.telemetry.stats import StepStats
from headway.telemetry.stats_log import StatsLog
from tests.engine.byte_tokenizer import ids
from tests.engine.scripted_core import ScriptedCore, say
from tests.engine.tiny_folder import complete_tiny_model

BLOCK = 16


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


def tiny(root: Path, **settings: Any) -> LLM:
    return LLM(str(complete_tiny_model("smollm", root).folder), **({"dtype": "float32", "block_size": BLOCK} | settings))


# ---- B01 -----------------------------------------------------------------------------------------------------------


def test_b01_five_hundred_aborts_at_random_steps_leave_nothing_behind() -> None:
    """64 blocks; each request is aborted after 0 to 6 steps, up to three live at once. Shared prefixes, prompts longer
    than a step's budget, and n=2."""
    world = ScriptedCore(say("x" * 2000), num_blocks=1 + 64, block_size=BLOCK, budget=48, max_model_len=64 * BLOCK)
    dice = random.Random(1)
    chunked = 0
    live: list[tuple[str, int]] = []
    for i in range(500):
        length = dice.choice((1, 15, 16, 17, 40, 100, 300))
        prompt = [*ids("the same beginning of every prompt "), *(dice.randrange(200) for _ in range(length))]
        n = dice.choice((1, 1, 2))
        world.add(str(i), prompt, max_tokens=50, ignore_eos=True, n=n, temperature=0.5 if n > 1 else 0.0)
        chunked += len(prompt) > 48
        live.append((str(i), dice.randint(0, 6)))
        if len(live) == 3 or i == 499:
            for name, steps in sorted(live, key=lambda entry: entry[1]):
                for _ in range(steps - max((s for other, s in live if s < steps), default=0)):
                    world.core.step()
                world.core.abort(name)
            live.clear()
    assert sum(s.prefix_hits for s in world.steps) > 0
    assert chunked > 0
    world.check_empty()
    assert not any(world.kv.pool.references(block) for block in range(world.kv.pool.num_blocks))
    assert [r.finish_reason for r in world.requests].count("abort") == len(world.requests) > 500
    world.add("all", [7] * (60 * BLOCK), max_tokens=4 * BLOCK, ignore_eos=True)
    held = 0
    while world.core.has_work:
        outputs = world.core.step()
        held = max(held, 64 - world.kv.pool.num_free)
    assert outputs[-1].outputs[0].finish_reason == "length"
    assert held == 64
    world.check_empty()


# ---- B04 -----------------------------------------------------------------------------------------------------------


def test_b04_a_context_that_cannot_fit_is_refused_at_the_start(root: Path) -> None:
    with pytest.raises(CapacityError) as caught:
        tiny(root, num_gpu_blocks_override=8, max_model_len=256)
    message = caught.value.message
    assert "max seq len (256)" in message
    assert "longest sequence that fits has 128 tokens and takes" in message
    assert "--max-model-len 128" in message
    assert "GPU memory" not in message
    assert "gpu_memory_utilization" not in message


def test_b04_an_exact_fit_finishes_alone_and_two_finish_one_way_or_the_other(root: Path) -> None:
    plans: list[StepStats] = []
    llm = tiny(root, num_gpu_blocks_override=8, max_model_len=128, observers=Observers(on_step=plans.append))
    params = SamplingParams(temperature=0, max_tokens=28, ignore_eos=True)
    prompts = [{"prompt_token_ids": [5 + (i + k) % 150 for i in range(100)]} for k in range(2)]
    alone = [llm.generate(p, params, use_tqdm=False)[0].outputs[0] for p in prompts]
    both = [o.outputs[0] for o in llm.generate(prompts, params, use_tqdm=False)]
    assert [(len(o.token_ids), o.finish_reason) for o in (*alone, *both)] == [(28, "length")] * 4
    assert [o.token_ids for o in both] == [o.token_ids for o in alone]
    empty = [p.scheduled_tokens == 0 and p.waiting > 0 for p in plans]
    assert not any(a and b for a, b in pairwise(empty))


# ---- B05 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_b05_preempted_streams_equal_their_solo_runs(root: Path, policy: str, caplog: pytest.LogCaptureFixture) -> None:
    """Blocks for two and a half sequences, six requests of 40 + 60 tokens; with priorities a late one is more urgent."""
    steps: list[StepStats] = []
    metrics, log = EngineMetrics("tiny"), StatsLog()

    def watch(step: StepStats) -> None:
        steps.append(step)
        metrics.on_step(step)
        log.observe(step)

    blocks_each = -(-100 // BLOCK)
    llm = tiny(
        root, num_gpu_blocks_override=blocks_each * 5 // 2, max_model_len=128, scheduling_policy=policy,
        observers=Observers(on_step=watch, on_request=metrics.on_request),
    )  # fmt: skip
    prompts = [[5 + (i * 3 + 11 * k) % 150 for i in range(40)] for k in range(6)]
    params = SamplingParams(temperature=0, max_tokens=60, ignore_eos=True)
    alone = [llm.generate({"prompt_token_ids": p}, params, use_tqdm=False)[0].outputs[0] for p in prompts]
    llm.reset_prefix_cache()
    steps.clear()
    outputs, ended = stream(llm, prompts, late=5, urgent=policy == "priority")
    with caplog.at_level(logging.WARNING):
        log.close()
    for number, want in enumerate(alone):
        parts = [o.outputs[0] for o in outputs[number]]
        assert [t for part in parts for t in part.token_ids] == want.token_ids
        assert "".join(part.text for part in parts) == want.text
    preemptions = sum(s.preemptions for s in steps)
    assert 0 < preemptions <= 6 * 60 / BLOCK, "each resume has to win at least a block"
    assert sum(s.prompt_tokens for s in steps) == 6 * 40
    if policy == "priority":
        assert ended.index(5) < ended.index(4), "the urgent one waits for its elders"
    else:
        assert ended == sorted(ended)
    assert f"vllm:num_preemptions_total{{engine=\"0\",model_name=\"tiny\"}} {float(preemptions)}" in metrics.render().decode()
    warnings = [r.getMessage() for r in caplog.records if "preempted" in r.getMessage()]
    assert warnings
    assert all("--kv-cache-memory-bytes" in w for w in warnings)


def stream(llm: LLM, prompts: list[list[int]], *, late: int, urgent: bool) -> tuple[dict[int, list[RequestOutput]], list[int]]:
    """Deltas of all requests, and the order in which they ended; number `late` comes after ten steps, with a better priority when `urgent`."""
    loaded = llm._engine
    core = loaded.core
    params = SamplingParams(temperature=0, max_tokens=60, ignore_eos=True, output_kind=OutputKind.DELTA)
    out: dict[int, list[RequestOutput]] = {i: [] for i in range(len(prompts))}
    ended: list[int] = []

    def add(number: int) -> None:
        priority = -1 if urgent and number == late else 0
        core.add(admit(str(number), prompts[number], params, loaded.limits, loaded.tokenizer, core.scheduler.kv, priority=priority))

    for number in range(len(prompts)):
        if number != late:
            add(number)
    while core.has_work:
        if core.steps and sum(len(o) for o in out.values()) >= 10 and not out[late] and str(late) not in core._streams:
            add(late)
        for output in core.step():
            number = int(output.request_id)
            out[number].append(output)
            if output.finished:
                ended.append(number)
    return out, ended


def test_b05_a_resumed_sequence_precedes_newcomers_of_its_priority() -> None:
    for policy in ("fcfs", "priority"):
        world = ScriptedCore(say("x" * 100), num_blocks=1 + 5, block_size=BLOCK, policy=policy)
        for name in ("first", "second", "third"):
            world.add(name, "p" * 30 + name[0], max_tokens=40, ignore_eos=True, output_kind=OutputKind.DELTA)
        order = [output.request_id for outputs in iter_steps(world) for output in outputs if output.finished]
        assert sum(s.preemptions for s in world.steps) > 0
        assert order == ["first", "second", "third"]


def iter_steps(world: ScriptedCore) -> Any:
    while world.core.has_work:
        yield world.core.step()
