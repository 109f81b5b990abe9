"""stream_options in all forms, on both routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.server.api import CHAT, COMPLETIONS, USER, Api, error
from tests.server.scripted_engine import ScriptedEngine

Make = Callable[..., Api]
BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
PROMPT_TOKENS = {COMPLETIONS: 3, CHAT: 20}


@BOTH
@pytest.mark.parametrize("extra", [{}, {"stream_options": {}}, {"stream_options": {"include_usage": False}}, {"stream_options": None}])
def test_no_usage_unless_asked(api: Api, path: str, extra: dict[str, Any]) -> None:
    chunks = api.stream(path, max_tokens=5, **extra)
    assert all("usage" not in c and c["choices"] for c in chunks)


@BOTH
def test_usage_at_the_end(api: Api, path: str) -> None:
    chunks = api.stream(path, max_tokens=5, stream_options={"include_usage": True})
    assert [("usage" in c) for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1]["choices"] == []
    n = PROMPT_TOKENS[path]
    assert chunks[-1]["usage"] == {"prompt_tokens": n, "completion_tokens": 5, "total_tokens": n + 5}
    assert "system_fingerprint" in chunks[-1]
    assert all("system_fingerprint" not in c for c in chunks[:-1])


@BOTH
def test_usage_in_every_chunk_never_falls(api: Api, path: str) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = api.stream(path, max_tokens=5, stream_options=options)
    counts = [c["usage"]["completion_tokens"] for c in chunks]
    assert counts == sorted(counts)
    assert counts[-1] == 5
    assert counts[0] == (0 if path == CHAT else 1)


@BOTH
def test_continuous_alone_asks_for_nothing(api: Api, path: str) -> None:
    assert all("usage" not in c for c in api.stream(path, stream_options={"continuous_usage_stats": True}))


@BOTH
def test_stream_options_need_stream(api: Api, path: str) -> None:
    body = {"prompt": "x", "messages": USER, "stream_options": {"include_usage": True}}
    found = error(api.post(path, body), 400, "body_invalid", "stream_options")
    assert "stream_options" in found["message"]


@BOTH
def test_the_server_can_force_it(make_api: Make, path: str) -> None:
    chunks = make_api(enable_force_include_usage=True).stream(path)
    assert all("usage" in c for c in chunks)
    assert chunks[-1]["choices"] == []


@BOTH
def test_cached_tokens_where_the_server_tells_them(make_api: Make, path: str) -> None:
    api = make_api(enable_prompt_tokens_details=True)
    cached = {"cached_tokens": PROMPT_TOKENS[path] // 2}
    body = api.complete() if path == COMPLETIONS else api.chat()
    assert body["usage"]["prompt_tokens_details"] == cached
    chunks = api.stream(path, stream_options={"include_usage": True})
    assert chunks[-1]["usage"]["prompt_tokens_details"] == cached


def test_cached_tokens_of_several_prompts_add_up(make_api: Make) -> None:
    api = make_api(enable_prompt_tokens_details=True)
    assert api.complete(prompt=["abcd", "efgh"])["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}


def test_all_sequences_count(make_api: Make) -> None:
    api = make_api(ScriptedEngine(b"abc"))
    chunks = api.stream(COMPLETIONS, prompt=["x", "y"], n=2, stream_options={"include_usage": True})
    assert chunks[-1]["usage"] == {"prompt_tokens": 2, "completion_tokens": 16, "total_tokens": 18}
