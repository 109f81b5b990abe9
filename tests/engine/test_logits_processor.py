"""Logits processors: rows stay with their requests, and what a processor does wrong hits only those whom it concerns."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import LLM, SamplingParams
from headway.engine.config import EngineConfig
from headway.engine.logits_processor import MoveDirectionality, OutputTokens
from headway.engine.processor_loading import make_processors, processor_classes
from headway.engine.processor_rows import ProcessorRows
from headway.errors import ConfigError, RequestError
from tests.engine.byte_tokenizer import VOCAB
from tests.engine.processors import Adapted, Force, Hidden, Wrong
from tests.engine.scripted_core import ScriptedCore, say
from tests.engine.sequences import make_sequence
from tests.engine.tiny_folder import complete_tiny_model


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.sets(st.integers(0, 9)), max_size=12), seed=st.integers(0, 99))
def test_every_row_is_that_of_its_request_whoever_comes_and_goes(steps: list[set[int]], seed: int) -> None:
    dice = random.Random(seed)
    everybody = [make_sequence([1], extra_args={"force": 20 + i} if i % 3 else None) for i in range(10)]
    (processor,) = make_processors([Force], EngineConfig("m"))
    rows = ProcessorRows([processor])
    mirror: list[Any] = []
    for chosen in steps:
        present = [everybody[i] for i in dice.sample(sorted(chosen), len(chosen))]
        if not present:
            continue
        rows.update(present)
        logits = torch.randn(len(present), VOCAB)
        want = logits.clone()
        for row, sequence in zip(want, present, strict=True):
            if args := sequence.params.extra_args:
                row[torch.arange(VOCAB) != args["force"]] = -float("inf")
        assert rows.apply(logits, argmax_invariant=False) == {}
        assert torch.equal(logits, want)
        update = processor.updates[-1]  # type: ignore[attr-defined]
        mirror = follow(mirror, update)
        assert sorted(map(id, mirror)) == sorted(id(s.params) for s in present)
        rows.update(present)
        assert processor.updates[-1] is None  # type: ignore[attr-defined]


def follow(mirror: list[Any], update: Any) -> list[Any]:
    """A batch kept as vLLM describes it: remove, add, move; what is left is dense."""
    if update is None:
        return mirror
    slots = dict(enumerate(mirror))
    for index in update.removed:
        del slots[index]
    for index, params, _, _ in update.added:
        slots[index] = params
    for source, target, direction in update.moved:
        assert direction is MoveDirectionality.UNIDIRECTIONAL
        assert target not in slots
        slots[target] = slots.pop(source)
    assert sorted(slots) == list(range(update.batch_size))
    return [slots[i] for i in range(update.batch_size)]


def test_the_output_is_seen_as_it_grows() -> None:
    tokens = [7, 8, 9]
    output = OutputTokens(tokens, 2)
    assert list(output) == [9]
    tokens += [10, 11]
    assert (len(output), output[0], output[-1], output[1:], list(output)) == (3, 9, 11, [10, 11], [9, 10, 11])
    with pytest.raises(IndexError):
        output[3]


def test_processors_steer_their_requests_only() -> None:
    world = ScriptedCore(say("abcdef"), processors=[Force, Adapted])
    world.add("forced", extra_args={"force": 9, "after": 2}, max_tokens=4)
    world.add("free", max_tokens=4)
    world.add("repeats", [50, 51], extra_args={"repeat": True}, max_tokens=3)
    outputs = {name: out[-1].outputs[0].token_ids for name, out in world.run().items()}
    free = outputs["free"]
    assert outputs["forced"] == [*free[:2], 9, 9]
    assert outputs["repeats"] == [51, 51, 51]


def test_one_that_leaves_the_likeliest_alone_is_not_asked_about_greedy_requests() -> None:
    world = ScriptedCore(say("abc"), processors=[Hidden])
    world.add("greedy", extra_args={"force": 9}, max_tokens=2)
    world.add("drawn", extra_args={"force": 9}, max_tokens=2, temperature=1.0)
    outputs = {name: out[-1].outputs[0] for name, out in world.run().items()}
    assert outputs["greedy"].text == "ab"
    assert outputs["drawn"].token_ids == [9, 9]


@pytest.mark.parametrize(("args", "message"), [({"raise": True}, "KeyError"), ({"nan": True}, "NaN")])
@pytest.mark.parametrize("kind", [Force, Hidden])
def test_a_processor_that_goes_wrong_ends_the_request_concerned(args: dict[str, Any], message: str, kind: type) -> None:
    world = ScriptedCore(say("abcdef"), processors=[kind])
    world.add("good", max_tokens=4, temperature=1.0, seed=1, top_k=1)
    world.add("bad", extra_args=args, max_tokens=4, temperature=1.0)
    world.add("other", extra_args={"force": 9, "after": 1}, max_tokens=4, temperature=1.0, top_k=1)
    outputs = {name: out[-1] for name, out in world.run().items()}
    assert outputs["bad"].outputs[0].finish_reason == "error"
    assert message in str(outputs["bad"].error)
    assert kind.__name__ in str(outputs["bad"].error)
    assert outputs["good"].outputs[0].text == "abcd"
    assert outputs["other"].outputs[0].token_ids[1:] == [9, 9, 9]


def test_a_wrong_shape_is_named() -> None:
    world = ScriptedCore(say("abcdef"), processors=[Wrong])
    world.add("a", max_tokens=4)
    error = world.run()["a"][-1].error
    assert error is not None
    assert f"[1, 5], expected a tensor of [1, {VOCAB}]" in error


def test_requests_are_checked_before_they_run() -> None:
    world = ScriptedCore(say("abc"), processors=[Force])
    with pytest.raises(RequestError, match="force must be a token id") as caught:
        world.admit("a", "Hi", extra_args={"force": "x"})
    assert caught.value.param == "vllm_xargs"
    with pytest.raises(RequestError, match="none is loaded"):
        ScriptedCore(say("abc")).admit("a", "Hi", extra_args={"force": 1})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no colon", "needs package.module:Class"), ("tests.engine.nowhere:Force", "ModuleNotFoundError"),
        ("tests.engine.processors:Nobody", "AttributeError"), ("tests.engine.processors:torch", "is no class derived"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_told_at_the_start(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        processor_classes([name])


def test_llm_loads_them_by_name_or_class(tmp_path: Path) -> None:
    folder = str(complete_tiny_model("smollm", tmp_path).folder)
    settings: dict[str, Any] = {"dtype": "float32", "max_model_len": 64, "kv_cache_memory_bytes": 8 << 20}
    for named in ([Force], ["tests.engine.processors:Force"], "tests.engine.processors:Force"):
        llm = LLM(folder, logits_processors=named, **settings)
        params = SamplingParams(temperature=0, max_tokens=3, extra_args={"force": 9})
        assert llm.generate([[5, 6]], params, use_tqdm=False)[0].outputs[0].token_ids == [9, 9, 9]
    with pytest.raises(ConfigError, match="exclude each other"):
        LLM(folder, logits_processors=[Force], batch_invariant=True, **settings)
    with pytest.raises(ConfigError, match="ModuleNotFoundError"):
        LLM(folder, logits_processors=["nowhere:X"], **settings)
