"""Reasoning that is too long is ended by its end mark, in a real engine whose forward pass follows a script."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import pytest

from headway.engine.async_engine import AsyncEngine
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.engine.thinking.budget import ThinkingBudget, ThinkingProgress
from headway.engine.thinking.marks import ThinkingMarks
from headway.errors import RequestError
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer


@pytest.fixture(scope="module")
def model() -> ScriptedModel:
    return ScriptedModel(scripted_tokenizer(["</think>"]))


@pytest.fixture(scope="module")
def engine(model: ScriptedModel) -> Iterator[AsyncEngine]:
    made, _ = scripted_engine(model)
    yield made
    asyncio.run(made.shutdown())


def answer(engine: AsyncEngine, prompt: str, **params: Any) -> str:
    async def run() -> str:
        text = ""
        asked = SamplingParams(temperature=0, max_tokens=40, **params)
        async for output in engine.generate(prompt, asked, f"r-{prompt}-{params}", RequestTerms()):
            text = output.outputs[0].text
        return text

    return asyncio.run(run())


OPEN = ThinkingMarks(opens=True)
TAGS = ThinkingMarks("[T]", "[/T]")


@pytest.mark.parametrize(
    ("prompt", "said", "params", "expected"),
    [
        ("ask <think>\n", b"abcdefgh</think>yes", {"thinking_token_budget": 4}, "abcd</think>fgh</think>yes"),  # one token; the script goes on behind it
        ("ask <think>\n", b"ab</think>yes", {"thinking_token_budget": 40}, "ab</think>yes"),
        ("ask", b"abcdefgh", {"thinking_token_budget": 2, "thinking_marks": OPEN}, "ab</think>defgh"),
        ("ask <think></think>", b"abcdefgh", {"thinking_token_budget": 2, "thinking_marks": OPEN}, "abcdefgh"),
        ("ask", b"abcdefgh", {"thinking_token_budget": 2}, "abcdefgh"),  # it never begins to think
        ("ask", b"[T]abcdefgh", {"thinking_token_budget": 2, "thinking_marks": TAGS}, "[T]ab[/T]gh"),  # four tokens
        ("ask", b"abcdefgh", {"thinking_token_budget": 0, "thinking_marks": OPEN}, "</think>bcdefgh"),
        ("ask", b"abcdefgh", {"thinking_token_budget": 2, "thinking_marks": OPEN, "stop": ["think>d"]}, "ab</"),
        ("ask", b"abcdefgh", {"thinking_token_budget": 2, "thinking_marks": OPEN, "allowed_token_ids": [*range(200), 256]}, "ab</think>defgh"),
    ],
)
def test_budgets(engine: AsyncEngine, model: ScriptedModel, prompt: str, said: bytes, params: dict[str, Any], expected: str) -> None:
    model.say_bytes(said)
    assert answer(engine, prompt, **params) == expected


def test_looking_again_changes_nothing() -> None:
    budget = ThinkingBudget(2, b"<think>", b"</think>", (500, 501), True, lambda token: {500: b"</th", 501: b"ink>"}.get(token, b"."))
    progress = ThinkingProgress(budget)
    tokens = [7, 7]  # of the prompt
    seen = []
    for _ in range(6):
        forced = progress.forced(tokens, 2)
        assert progress.forced(tokens, 2) == forced
        seen.append(forced)
        tokens.append(1 if forced is None else forced)
    assert seen == [None, None, 500, 501, None, None]


def test_a_copy_may_look_ahead() -> None:
    budget = ThinkingBudget(1, b"<think>", b"</think>", (500, 501), True, lambda token: {500: b"</th", 501: b"ink>"}.get(token, b"."))
    progress = ThinkingProgress(budget)
    ahead = [copy.copy(progress).forced([1] * 3 + drafts, 3) for drafts in ([1], [1, 500], [1, 500, 501], [1, 500, 501, 7])]
    assert ahead == [500, 501, None, None]
    assert progress.forced([1] * 3, 3) is None


def test_values() -> None:
    for wrong in (-1, True, "x"):
        with pytest.raises(RequestError, match="thinking_token_budget"):
            SamplingParams(thinking_token_budget=wrong)  # type: ignore[arg-type]
