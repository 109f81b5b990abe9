"""fast_response, system_prompt, header_mutation, request_params, prompt_cache, tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from headway.errors import ConfigError, HeadwayError
from headway.router.config.document.plugins import HeaderMutationPlugin, RequestParamsPlugin
from tests.router.plugins.rig import Rig, chat, run

CARDS = {"modelCards": [{"name": "m", "max_output_tokens": 77}]}


def sent(tmp_path: Path, body: dict[str, Any], *plugins: tuple[str, dict[str, Any]], **rig: Any) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        made = Rig(tmp_path, *plugins, **rig)
        await made.ask(body)
        return made.sent[0]

    return run(work)


@pytest.mark.parametrize("streams", [False, True])
def test_fast_response(tmp_path: Path, streams: bool) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, ("fast_response", {"message": "Not here. " * 20}), ("system_prompt", {"system_prompt": "x"}))
        told = await rig.ask(chat("hi", stream=streams))
        assert (told.text, told.path, rig.sent) == ("Not here. " * 20, "fast_response", [])
        assert told.context.response_headers["x-vsr-fast-response"] == "true"
        assert (len(told.chunks) > 3) == streams

    run(work)


SYSTEM = {"role": "system", "content": "old"}
USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [
        ("replace", [USER], [{"role": "system", "content": "new"}, USER]),
        ("replace", [SYSTEM, USER, {"role": "developer", "content": "x"}], [{"role": "system", "content": "new"}, USER]),
        ("insert", [USER], [{"role": "system", "content": "new"}, USER]),
        ("insert", [SYSTEM, USER], [{"role": "system", "content": "new\n\nold"}, USER]),
        (
            "insert",
            [{"role": "developer", "content": [{"type": "text", "text": "old"}]}, USER],
            [{"role": "developer", "content": [{"type": "text", "text": "new"}, {"type": "text", "text": "old"}]}, USER],
        ),
    ],
)
def test_system_prompt(tmp_path: Path, mode: str, before: list[Any], after: list[Any]) -> None:
    body = {"model": "auto", "messages": before}
    found = sent(tmp_path, body, ("system_prompt", {"system_prompt": "new", "mode": mode}))
    assert found["messages"] == after
    assert body["messages"] is before


def test_header_mutation(tmp_path: Path) -> None:
    async def work() -> None:
        changes = {"add": [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}], "update": [{"name": "X-B", "value": "b"}], "delete": ["X-C"]}
        rig = Rig(tmp_path, ("header_mutation", changes))
        await rig.ask("hi")
        assert rig.headers_sent == [{"x-a": "1, 2", "x-b": "b", "x-c": None}]

    run(work)


@pytest.mark.parametrize("name", ["Host", "content-length", "x-envoy-max-retries", "a b", "", "x\r\ny"])
def test_headers_of_the_connection_are_refused(name: str) -> None:
    for given in ({"delete": [name]}, {"add": [{"name": name, "value": "x"}]}):
        with pytest.raises(ValidationError):
            HeaderMutationPlugin.model_validate(given)
    with pytest.raises(ValidationError):
        HeaderMutationPlugin.model_validate({"add": [{"name": "x", "value": "a\r\nb: c"}]})


@pytest.mark.parametrize(
    ("settings", "fields", "after"),
    [
        ({"blocked_params": ["logprobs"]}, {"logprobs": True, "top_p": 1}, {"top_p": 1}),
        ({"strip_unknown": True}, {"min_p": 0.1, "seed": 3}, {"seed": 3}),
        ({"max_n": 2}, {"n": 5}, {"n": 2}),
        ({"max_n": 2}, {}, {}),
        ({"max_tokens_limit": 9}, {"max_tokens": 50}, {"max_tokens": 9}),
        ({"max_tokens_limit": 9}, {"max_completion_tokens": 50, "max_tokens": 3}, {"max_completion_tokens": 9, "max_tokens": 3}),
        ({"max_tokens_limit": 9}, {}, {"max_tokens": 9}),
        ({"default_max_tokens": 5}, {}, {"max_tokens": 5}),
        ({"default_max_tokens": 5}, {"max_completion_tokens": 7}, {"max_completion_tokens": 7}),
        ({"default_max_tokens": "auto"}, {}, {"max_tokens": 77}),
        ({"default_max_tokens": "auto", "max_tokens_limit": 10}, {}, {"max_tokens": 10}),
    ],
)
def test_request_params(tmp_path: Path, settings: dict[str, Any], fields: dict[str, Any], after: dict[str, Any]) -> None:
    found = sent(tmp_path, chat("hi", **fields), ("request_params", settings), routing=CARDS)
    assert found == chat("hi", **after)


def test_what_a_request_needs_cannot_be_blocked() -> None:
    with pytest.raises(ValidationError, match="cannot be blocked"):
        RequestParamsPlugin.model_validate({"blocked_params": ["messages"]})


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {}}}


TOOLS = chat("hi", tools=[tool("a.x"), tool("a.y"), tool("b")], tool_choice={"type": "function", "function": {"name": "b"}}, parallel_tool_calls=True)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"mode": "filtered", "allow_tools": ["a.*"]}, ["a.x", "a.y"]),
        ({"mode": "filtered", "block_tools": ["b"]}, ["a.x", "a.y"]),
        ({"mode": "filtered", "allow_tools": ["a.*"], "block_tools": ["a.x"]}, ["a.y"]),
        ({"mode": "passthrough"}, ["a.x", "a.y", "b"]),
    ],
)
def test_tools_are_filtered(tmp_path: Path, settings: dict[str, Any], names: list[str]) -> None:
    found = sent(tmp_path, TOOLS, ("tools", {"enabled": True, **settings}))
    assert [each["function"]["name"] for each in found["tools"]] == names
    assert (found["tool_choice"] == "auto") == ("b" not in names)


@pytest.mark.parametrize("settings", [{"mode": "none"}, {"mode": "filtered", "allow_tools": ["z"]}])
def test_no_tools_are_left(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert sent(tmp_path, TOOLS, ("tools", {"enabled": True, **settings})) == chat("hi")


def test_the_history_of_tools_is_taken_out(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": "I look", "tool_calls": [{"id": "1"}]}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "2"}]}
    body = {"model": "auto", "messages": [USER, said, {"role": "tool", "tool_call_id": "1", "content": "x"}, call, {"role": "tool", "content": "y"}]}
    found = sent(tmp_path, body, ("tools", {"enabled": True, "mode": "none", "strip_tool_history": True}))
    assert found["messages"] == [USER, {"role": "assistant", "content": "I look"}]



def anthropic(tmp_path: Path, body: dict[str, Any], **settings: Any) -> dict[str, Any]:
    from headway.router.config.document.compression_plugin import PromptCachePlugin
    from headway.router.plugins.prompt_cache import PromptCache

    async def work() -> dict[str, Any]:
        rig = Rig(tmp_path)
        rig.plugins.append(PromptCache(PromptCachePlugin.model_validate({"enabled": True, **settings}), frozenset({"m"})))  # type: ignore[attr-defined]
        await rig.ask(body)
        return rig.sent[0]

    return run(work)


def test_cache_markers(tmp_path: Path) -> None:
    body = {"model": "auto", "messages": [SYSTEM, USER], "tools": [tool("a"), tool("b")]}
    found = anthropic(tmp_path, body, ttl="1h")
    marker = {"type": "ephemeral", "ttl": "1h"}
    assert found["messages"][0]["content"] == [{"type": "text", "text": "old", "cache_control": marker}]
    assert found["tools"] == [tool("a"), {**tool("b"), "cache_control": marker}]
    assert "cache_control" not in str(body)
    only = anthropic(tmp_path, body, targets=["tools"])
    assert only["messages"] == body["messages"]
    own = {**body, "tools": [{**tool("a"), "cache_control": {"type": "ephemeral"}}]}
    assert anthropic(tmp_path, own) == own


def test_backends_without_markers(tmp_path: Path) -> None:
    body = {"model": "auto", "messages": [SYSTEM, USER]}
    assert sent(tmp_path, body, ("prompt_cache", {"enabled": True})) == body
    with pytest.raises(HeadwayError, match="does not take cache markers") as caught:
        sent(tmp_path, body, ("prompt_cache", {"enabled": True, "on_unsupported": "reject"}))
    assert caught.value.reason == "prompt_cache_target_unsupported"


def test_a_plugin_that_stands_there_twice_or_is_wrong_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="twice"):
        Rig(tmp_path, ("fast_response", {"message": "a"}), ("fast_response", {"message": "b"}))
    with pytest.raises(ConfigError, match=r"configuration\.message"):
        Rig(tmp_path, ("fast_response", {}))
