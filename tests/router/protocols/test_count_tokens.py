"""POST /v1/messages/count_tokens, asked by Anthropic's own client: who counts, and what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.router.listener.live_front import AUTO, LiveFront, decision, run
from tests.router.protocols.test_messages import TOOL, USER
from tests.router.upstream.scripted_backend import Script, ScriptedBackend, answers

ROUTING: dict[str, Any] = {
    "signals": {"keywords": [{"name": "hi", "operator": "OR", "keywords": ["hi"]}]},
    "decisions": [decision("greeting", {"operator": "AND", "conditions": [{"type": "keyword", "name": "hi"}]})],
}


def test_a_backend_of_vllms_kind_tokenizes_the_chat(tmp_path: Path) -> None:
    async def work() -> None:
        script = answers({"count": 42, "max_model_len": 100, "tokens": [1]})
        async with ScriptedBackend([script]) as backend, LiveFront(backend, tmp_path, routing=ROUTING) as front:
            tools: list[Any] = [TOOL]
            counting = front.anthropic().messages.with_raw_response
            told = await counting.count_tokens(model=AUTO, system="be nice", messages=USER, tools=tools)
            assert (await told.parse()).input_tokens == 42
            assert (told.headers["x-headway-token-count"], told.headers["x-vsr-selected-model"]) == ("backend", "m")
            asked = backend.asked[0]
            assert asked.path == "/tokenize"
            assert asked.body.keys() == {"model", "messages", "tools"}
            assert asked.body["messages"] == [{"role": "system", "content": "be nice"}, {"role": "user", "content": "hi"}]
            assert asked.body["tools"][0]["function"]["name"] == "weather"
            assert front.counted("headway_token_counts", "backend") == 1
            assert front.counted("llm_decision_match", "default", "greeting") == 0  # no traffic

    run(work)


def test_a_backend_with_anthropics_api_counts_itself(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers({"input_tokens": 17})]) as backend, LiveFront(backend, tmp_path, model={"api_format": "anthropic"}) as front:
            tools: list[Any] = [TOOL]
            found = await front.anthropic().messages.count_tokens(model="m", system="be nice", messages=USER, tools=tools)
            assert found.input_tokens == 17
            asked = backend.asked[0]
            assert asked.path == "/v1/messages/count_tokens"
            assert asked.body.keys() == {"model", "messages", "system", "tools"}

    run(work)


@pytest.mark.parametrize(
    "script", [answers({"detail": "Not Found", "count": 5}, 404), answers(b"no json"), answers({"count": "many"}), answers({}, 500)], ids=["404", "text", "word", "500"]
)
def test_where_nobody_counts_it_is_an_estimate_and_says_so(tmp_path: Path, script: Script) -> None:
    async def work() -> None:
        async with ScriptedBackend([script]) as backend, LiveFront(backend, tmp_path) as front:
            told = await front.anthropic().messages.with_raw_response.count_tokens(model="m", messages=[{"role": "user", "content": "x" * 41}])
            assert ((await told.parse()).input_tokens, told.headers["x-headway-token-count"]) == (11, "estimate")

    run(work)


def test_hosted_providers_are_not_asked(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers({"count": 1})]) as backend:
            refs = [{"base_url": f"http://{backend.endpoint}/v1", "provider": "openai"}]
            async with LiveFront(None, tmp_path, model={"backend_refs": refs}) as front:
                assert (await front.anthropic().messages.count_tokens(model="m", messages=USER)).input_tokens == 1
                assert backend.asked == []

    run(work)


def test_refusals_have_anthropics_form(tmp_path: Path) -> None:
    keys = [{"name": "k", "key": "k", "models": [AUTO]}]

    async def work() -> None:
        async with LiveFront(None, tmp_path, listeners=[{"name": "public", "port": 1, "keys": keys}]) as front:
            client = front.anthropic("k")
            with pytest.raises(anthropic.PermissionDeniedError):
                await client.messages.count_tokens(model="m", messages=USER)
            with pytest.raises(anthropic.AuthenticationError):
                await front.anthropic("x").messages.count_tokens(model="m", messages=USER)
            with pytest.raises(anthropic.BadRequestError) as refused:
                await client.messages.count_tokens(model=AUTO, messages=[])
            assert refused.value.body["error"]["type"] == "invalid_request_error"  # type: ignore[index]
            assert (await front.http.get("/v1/messages/count_tokens", headers={"x-api-key": "k"})).status_code == 405

    run(work)
