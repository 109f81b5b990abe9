"""Completions and embeddings: passed on where a model is named, asked as a chat where the router chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.router.listener.live_front import AUTO, LiveFront, decision, events, run
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, answers, chunk, streams

TEXT = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [{"index": 0, "text": "x", "finish_reason": "stop"}]}
VECTORS = {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": 2, "total_tokens": 2}}
ROUTING: dict[str, Any] = {
    "signals": {"keywords": [{"name": "k", "operator": "OR", "keywords": ["magic"]}]},
    "decisions": [decision("d", {"operator": "AND", "conditions": [{"type": "keyword", "name": "k"}]})],
}


def test_a_model_that_is_named_gets_the_body_as_it_is(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(TEXT), answers(VECTORS)]) as backend, LiveFront(backend, tmp_path) as front:
            client = front.openai()
            found = await client.completions.create(model="m", prompt=[1, 2, 3], suffix="!", echo=True)
            assert found.choices[0].text == "x"
            vectors = await client.embeddings.create(model="m", input=["a"])
            assert vectors.data[0].embedding == [0.5]
            assert [asked.path for asked in backend.asked] == ["/v1/completions", "/v1/embeddings"]
            assert backend.asked[0].body["prompt"] == [1, 2, 3]
            assert front.counted("llm_model_prompt_tokens", "m") == 2

    run(work)


def test_a_routed_prompt_is_asked_as_a_chat(tmp_path: Path) -> None:
    async def work() -> None:
        scripts = [answers(), streams(chunk("he"), chunk("llo", "stop"), DONE)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path, routing=ROUTING) as front:
            client = front.openai()
            found = await client.completions.create(model=AUTO, prompt="a magic word", max_tokens=3)
            assert (found.object, found.choices[0].text) == ("text_completion", "hello")
            assert backend.asked[0].path == "/v1/chat/completions"
            assert backend.asked[0].body["messages"] == [{"role": "user", "content": "a magic word"}]
            answer = await front.http.post("/v1/completions", json={"model": AUTO, "prompt": "magic", "stream": True})
            assert "".join(event["choices"][0]["text"] for event in events(answer.text)) == "hello"
            assert answer.headers["x-vsr-selected-decision"] == "d"
            assert answer.headers["x-vsr-protocol-warnings"] == "info;asked_as_chat;prompt"

    run(work)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": [1, 2]}),
        ("/v1/completions", {"prompt": ["a", "b"]}),
        ("/v1/completions", {"prompt": "a", "echo": True}),
        ("/v1/completions", {"prompt": "a", "n": 2}),
        ("/v1/embeddings", {"input": "a"}),
    ],
)
def test_what_a_routed_chat_cannot_do_is_refused(tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=ROUTING) as front:
            answer = await front.http.post(path, json={"model": AUTO, **body})
            assert answer.status_code == 400
            assert backend.asked == []

    run(work)
