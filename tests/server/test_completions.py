"""/v1/completions against a scripted engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openai.types import Completion
from pydantic import TypeAdapter

from headway.wire.completions import CompletionAnswer
from tests.server.api import COMPLETIONS, Api, error
from tests.server.scripted_engine import EOS, ScriptedEngine

Make = Callable[..., Api]


def test_shape_and_usage(api: Api) -> None:
    body = api.complete(max_tokens=5)
    assert body["id"].startswith("cmpl-")
    assert body["object"] == "text_completion"
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8, "prompt_tokens_details": None, "completion_tokens_details": None}
    choice = body["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("Hello", "length", None)
    assert TypeAdapter(CompletionAnswer).validate_python(body, strict=True) == body  # no field missing, none unknown
    assert Completion.model_validate(body).choices[0].text == "Hello"


def test_sixteen_tokens_and_the_served_model_by_default(make_api: Make) -> None:
    api = make_api(ScriptedEngine(b"x" * 100))
    body = api.complete()
    assert (body["usage"]["completion_tokens"], body["model"]) == (16, "tiny")


def test_prompts_in_all_forms_give_choices_in_order(make_api: Make) -> None:
    api = make_api(ScriptedEngine(lambda ids, index: bytes(ids[-1:]) * 2 + bytes([48 + index])))
    for prompt in (["ab", "cd"], [[97, 98], [99, 100]]):
        body = api.complete(prompt=prompt)
        assert [(c["index"], c["text"]) for c in body["choices"]] == [(0, "bb0"), (1, "dd0")]
        assert body["usage"]["prompt_tokens"] == 4
    body = api.complete(prompt=["ab", "cd"], n=2)
    assert [c["text"] for c in body["choices"]] == ["bb0", "bb1", "dd0", "dd1"]
    assert body["usage"] == {"prompt_tokens": 4, "completion_tokens": 16, "total_tokens": 20, "prompt_tokens_details": None, "completion_tokens_details": None}
    assert api.complete(prompt=[97, 98])["choices"][0]["text"] == "bb0"


def test_streamed_prompts_keep_their_indexes(make_api: Make) -> None:
    api = make_api(ScriptedEngine(lambda ids, index: bytes(ids[-1:]) * 2 + bytes([48 + index])))
    chunks = api.stream(COMPLETIONS, prompt=["ab", "cd"], n=2)
    texts = {i: "".join(c["text"] for k in chunks for c in k["choices"] if c["index"] == i) for i in range(4)}
    assert texts == {0: "bb0", 1: "bb1", 2: "dd0", 3: "dd1"}
    assert sum(1 for k in chunks for c in k["choices"] if c["finish_reason"]) == 4
    assert [("system_fingerprint" in k) for k in chunks].index(True) == len(chunks) - 1


def test_echo_streamed_and_not(api: Api) -> None:
    assert api.complete(echo=True)["choices"][0]["text"] == "SayHello, world"
    assert "".join(k["choices"][0]["text"] for k in api.stream(COMPLETIONS, echo=True)) == "SayHello, world"
    assert api.complete(prompt=list("né".encode()), echo=True, max_tokens=1)["choices"][0]["text"] == "néH"


def test_no_tokens_with_echo_only(api: Api) -> None:
    body = api.complete(echo=True, max_tokens=0, logprobs=1)
    choice = body["choices"][0]
    assert (choice["text"], choice["finish_reason"], body["usage"]["completion_tokens"]) == ("Say", "length", 0)
    assert choice["logprobs"]["tokens"] == ["S", "a", "y"]
    chunks = api.stream(COMPLETIONS, echo=True, max_tokens=0)
    assert "".join(k["choices"][0]["text"] for k in chunks) == "Say"
    error(api.post(COMPLETIONS, {"prompt": "x", "max_tokens": 0}), 400, "body_invalid", "max_tokens")


def test_no_tokens_end_with_length_also_where_the_model_would_stop(make_api: Make) -> None:
    api = make_api(ScriptedEngine(b""))
    assert api.complete(echo=True, max_tokens=0)["choices"][0]["finish_reason"] == "length"
    assert api.stream(COMPLETIONS, echo=True, max_tokens=0)[-1]["choices"][0]["finish_reason"] == "length"
    assert api.complete(echo=True)["choices"][0]["finish_reason"] == "stop"


def test_token_ids_on_request(api: Api) -> None:
    choice = api.complete(return_token_ids=True)["choices"][0]
    assert choice["token_ids"] == [*b"Hello, world", EOS]
    assert choice["prompt_token_ids"] == [*b"Say"]
    chunks = api.stream(COMPLETIONS, return_token_ids=True)
    assert chunks[0]["choices"][0]["prompt_token_ids"] == [*b"Say"]
    assert [t for k in chunks for t in k["choices"][0]["token_ids"]] == [*b"Hello, world", EOS]
    assert all("prompt_token_ids" not in k["choices"][0] for k in chunks[1:])


def test_truncation_keeps_one_side(api: Api) -> None:
    engine = api.engine
    for extra, kept in (({}, b"ay"), ({"truncation_side": "right"}, b"Sa")):
        assert api.complete(truncate_prompt_tokens=2, **extra)["usage"]["prompt_tokens"] == 2
        assert engine.seen[-1][0] == [*kept]
    api.complete(truncate_prompt_tokens=50)
    assert engine.seen[-1][0] == [*b"Say"]
    api.complete(prompt="x" * 500, truncate_prompt_tokens=-1)
    assert len(engine.seen[-1][0]) == 199
    error(api.post(COMPLETIONS, {"prompt": "x", "truncate_prompt_tokens": 201}), 400, param="truncate_prompt_tokens")


@pytest.mark.parametrize("prompt", ["", [""], [[]], ["a", ""]])
def test_empty_prompts(make_api: Make, prompt: Any) -> None:
    error(make_api().post(COMPLETIONS, {"prompt": prompt}), 400, param="prompt")


def test_an_empty_text_is_fine_where_bos_is_added(make_api: Make) -> None:
    api = make_api()
    api.engine.tokenizer.adds_bos = True
    assert api.complete(prompt="")["usage"]["prompt_tokens"] == 1
    error(api.post(COMPLETIONS, {"prompt": "", "add_special_tokens": False}), 400, param="prompt")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("length", [200, 201, 5000])
def test_prompts_as_long_as_the_context(api: Api, length: int, stream: bool) -> None:
    for prompt in ("x" * length, [120] * length):
        found = error(api.post(COMPLETIONS, {"prompt": prompt, "stream": stream}), 400, "context_length_exceeded")
        assert found["message"].startswith("This model's maximum context length is 200 tokens. However, your prompt contains")
    assert not api.engine.active


def test_max_tokens_beyond_the_room_is_cut_silently(make_api: Make) -> None:
    api = make_api(ScriptedEngine(b"y" * 500))
    body = api.complete(prompt="x" * 196, max_tokens=10)
    assert (body["usage"]["completion_tokens"], body["choices"][0]["finish_reason"]) == (4, "length")


def test_very_long_text_is_refused_unread(api: Api) -> None:
    found = error(api.post(COMPLETIONS, {"prompt": "x" * 100_000}), 400, "context_length_exceeded", "input_text")
    assert "100000 characters" in found["message"]
    assert api.engine.tokenizer.encoded == []
    api.complete(prompt="x" * 100_000, truncate_prompt_tokens=4)
    assert api.engine.tokenizer.encoded == [200 * 2 * len("<bos>")]


def test_too_many_choices(api: Api) -> None:
    error(api.post(COMPLETIONS, {"prompt": ["x"] * 1000, "n": 17}), 400, param="n")


def test_sampling_fields_reach_the_engine(api: Api) -> None:
    fields: dict[str, Any] = {
        "temperature": 0.5, "top_p": 0.9, "top_k": 3, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": 0.2,
        "frequency_penalty": 0.3, "seed": 7, "stop_token_ids": [5], "ignore_eos": True, "min_tokens": 2, "logit_bias": {"1": 2.0},
        "allowed_token_ids": [1, 2], "bad_words": ["x"], "skip_special_tokens": False, "include_stop_str_in_output": True,
        "spaces_between_special_tokens": False, "max_tokens": 9, "stream_interval": 4,
    }  # fmt: skip
    api.complete(stop="zz", cache_salt="s", **fields)
    _, params, other = api.engine.seen[-1]
    assert {name: getattr(params, name) for name in fields} == {**fields, "logit_bias": {1: 2.0}}
    assert params.stop == ["zz"]
    assert (other["cache_salt"], other["text"], other["priority"]) == ("s", "Say", 0)


def test_defaults_of_the_model_hold_unless_a_request_says_otherwise(api: Api) -> None:
    api.engine.default_sampling = {"temperature": 0.3, "top_k": 40, "max_tokens": 6}
    api.complete(top_k=0, max_tokens=100)
    params = api.engine.seen[-1][1]
    assert (params.temperature, params.top_k, params.top_p, params.max_tokens) == (0.3, 0, 1.0, 6)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": -5}, "top_k"),
        ({"min_p": 2}, "min_p"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"n": 0}, "n"),
        ({"n": 2, "temperature": 0}, "n"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"min_tokens": 9, "max_tokens": 4}, "min_tokens"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"logprobs": 21}, "logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"prompt_logprobs": 21}, "prompt_logprobs"),
        ({"allowed_token_ids": []}, "allowed_token_ids"),
        ({"logit_bias": {"999": 1}}, "logit_bias"),
        ({"prompt": [-1]}, "prompt"),
        ({"priority": 1}, "priority"),
        ({"suffix": "x"}, "suffix"),
        ({"structured_outputs": {}}, "structured_outputs"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_values_out_of_range(api: Api, fields: dict[str, Any], param: str, stream: bool) -> None:
    error(api.post(COMPLETIONS, {"prompt": "x", "stream": stream, **fields}), 400, param=param)
    assert not api.engine.active


def test_priority_where_the_queue_knows_it(make_api: Make) -> None:
    api = make_api(ScriptedEngine(scheduling_policy="priority"))
    api.complete(priority=-5)
    assert api.engine.seen[-1][2]["priority"] == -5


def test_all_logprobs_where_the_limit_is_off(make_api: Make) -> None:
    api = make_api(ScriptedEngine(max_logprobs=-1))
    api.complete(logprobs=-1)
    assert api.engine.seen[-1][1].logprobs == -1


def test_prompt_logprobs(api: Api) -> None:
    table = api.complete(prompt_logprobs=2, max_tokens=1)["choices"][0]["prompt_logprobs"]
    assert table[0] is None
    assert table[1]["97"] == {"logprob": -0.5, "rank": 1, "decoded_token": "a"}
    assert len(table) == 3


@pytest.mark.parametrize("stream", [False, True])
def test_unknown_model(api: Api, stream: bool) -> None:
    found = error(api.post(COMPLETIONS, {"prompt": "x", "model": "no-such", "stream": stream}), 404, "model_not_found", "model")
    assert "no-such" in found["message"]


def test_any_served_name_is_taken_and_the_first_is_told(make_api: Make) -> None:
    api = make_api(ScriptedEngine(served_model_name=("one", "two")))
    assert api.complete(model="two")["model"] == "one"
    assert api.complete()["model"] == "one"
    error(api.post(COMPLETIONS, {"prompt": "x", "model": "tiny"}), 404, "model_not_found")
