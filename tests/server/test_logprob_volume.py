"""Answers with more log-probabilities than memory should hold are refused before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headway.server import logprob_volume
from tests.server.api import CHAT, COMPLETIONS, USER, Api, error, ok
from tests.server.scripted_engine import VOCAB, ScriptedEngine

Make = Callable[..., Api]
TEN = "x" * 10


@pytest.mark.parametrize(
    ("path", "body", "entries"),
    [
        (COMPLETIONS, {"prompt": TEN, "echo": True, "logprobs": 1, "max_tokens": 5}, 30),
        (COMPLETIONS, {"prompt": [TEN, TEN], "prompt_logprobs": 2, "max_tokens": 5}, 60),
        (COMPLETIONS, {"prompt": TEN, "prompt_logprobs": -1, "max_tokens": 5}, 10 * VOCAB),
        (COMPLETIONS, {"prompt": TEN, "logprobs": 4, "n": 3, "max_tokens": 5, "temperature": 1}, 75),
        (CHAT, {"messages": USER, "logprobs": True, "top_logprobs": 4, "max_tokens": 6}, 30),
        (CHAT, {"messages": USER, "logprobs": True, "max_tokens": 30}, 30),
    ],
)
def test_volume_of_an_answer(
    make_api: Make, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], entries: int
) -> None:
    api = make_api(ScriptedEngine(b"Hello, world", max_logprobs=-1))
    monkeypatch.setattr(logprob_volume, "MAX_ENTRIES", entries)
    ok(api.post(path, body))
    seen = len(api.engine.seen)
    monkeypatch.setattr(logprob_volume, "MAX_ENTRIES", entries - 1)
    found = error(api.post(path, body), 400, "invalid_request")
    assert "logprobs" in str(found["param"])
    assert f"up to {entries} log-probabilities" in found["message"]
    assert len(api.engine.seen) == seen


def test_nothing_asked_nothing_counted(make_api: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logprob_volume, "MAX_ENTRIES", 0)
    ok(make_api().post(COMPLETIONS, {"prompt": TEN, "max_tokens": 50}))
