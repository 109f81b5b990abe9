"""/v1/chat/completions/batch against a scripted engine."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from tests.server.api import Api, error, ok
from tests.server.scripted_engine import ScriptedEngine

PATH = "/v1/chat/completions/batch"


def talk(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_choice_i_answers_talk_i(make_api: Any) -> None:
    api = make_api(ScriptedEngine(lambda ids, index: bytes(ids[6:9])), enable_prompt_tokens_details=True)
    body = ok(api.post(PATH, {"messages": [talk("one"), talk("two!"), talk("six")], "temperature": 0, "return_token_ids": True, "logprobs": True}))
    found = ChatCompletion.model_validate(body)
    assert [(choice.index, choice.message.content) for choice in found.choices] == [(0, "one"), (1, "two"), (2, "six")]
    assert [len(choice["token_ids"]) for choice in body["choices"]] == [4, 4, 4]
    assert body["prompt_token_ids"] is None
    prompts = [len(ids) for ids, _, _ in api.engine.seen]
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (sum(prompts), 12)
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == sum(n // 2 for n in prompts)
    assert all(params.temperature == 0 for _, params, _ in api.engine.seen)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": talk("x")}, "messages[0]"),
        ({"messages": [talk("x"), []]}, "messages[1]"),
        ({"messages": [talk("x"), [{"role": "wizard", "content": "x"}]]}, "messages[0].role"),
        ({"messages": [talk("x"), talk("y" * 300)]}, "input_tokens"),
        ({"stream": True}, "stream"),
        ({"n": 2}, "n"),
        ({"use_beam_search": True}, "use_beam_search"),
        ({"prompt_logprobs": 1}, "prompt_logprobs"),
    ],
)
def test_refusals(api: Api, fields: dict[str, Any], param: str) -> None:
    error(api.post(PATH, {"messages": [talk("x")], **fields}), 400, param=param)
    assert not api.engine.active
