"""Stream chunks built by hand are the JSON that OpenAI's own types read."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk

from headway.errors import StepError
from headway.wire import sse
from headway.wire.chunks import ChunkEncoder, chat_choice, completion_choice
from headway.wire.usage import usage, usage_json


def decoded(frame: bytes) -> dict[str, Any]:
    assert frame.startswith(b"data: ")
    assert frame.endswith(b"\n\n")
    assert frame.count(b"\n") == 2
    value: dict[str, Any] = json.loads(frame[6:])
    return value


@given(st.text(), st.integers(0, 5), st.sampled_from([None, "stop", "length"]), st.none() | st.integers(0, 2**31) | st.text())
def test_chat_chunk(text: str, index: int, finish: str | None, stop: int | str | None) -> None:
    encoder = ChunkEncoder("chatcmpl-1", "chat.completion.chunk", 5, 'm"x', "fp")
    frame = encoder.frame(chat_choice(index, text, None, None, finish, stop, [1, 2]), usage_json(1, 2, None))
    chunk = decoded(frame)
    ending = {"finish_reason": None} if finish is None else {"finish_reason": finish, "stop_reason": stop}
    choice = {"index": index, "delta": {"content": text}, "logprobs": None, **ending, "token_ids": [1, 2]}
    assert chunk == {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": 'm"x', "choices": [choice],
        "usage": {"prompt_tokens": 1, "total_tokens": 3, "completion_tokens": 2},
    }  # fmt: skip
    assert ChatCompletionChunk.model_validate(chunk).choices[0].delta.content == text


@given(st.text())
def test_completion_chunk(text: str) -> None:
    encoder = ChunkEncoder("cmpl-1", "text_completion", 5, "m", None)
    logprobs = {"tokens": [text], "token_logprobs": [-1.0], "top_logprobs": [{text: -1.0}], "text_offset": [0]}
    chunk = decoded(encoder.frame(completion_choice(1, text, logprobs, prompt_token_ids=[3]), last=True))
    expected = {"index": 1, "text": text, "logprobs": logprobs, "finish_reason": None, "prompt_token_ids": [3]}
    assert chunk == {"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "m", "choices": [expected]}


def test_the_first_chat_chunk_carries_the_role() -> None:
    encoder = ChunkEncoder("c", "chat.completion.chunk", 5, "m", "fp")
    chunk = decoded(encoder.frame(chat_choice(0, "", "assistant"), extra=b',"prompt_token_ids":[7]'))
    assert chunk["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunk["prompt_token_ids"] == [7]


def test_the_closing_chunk_has_usage_no_choice_and_the_fingerprint() -> None:
    chunk = decoded(ChunkEncoder("c", "text_completion", 5, "m", "fp").frame(b"", usage_json(4, 2, 3), last=True))
    assert chunk["choices"] == []
    assert chunk["system_fingerprint"] == "fp"
    assert chunk["usage"] == {k: v for k, v in usage(4, 2, 3).items() if v is not None}  # unset fields are left out
    finished = decoded(ChunkEncoder("c", "text_completion", 5, "m", "fp").frame(completion_choice(0, "x", None, "stop")))
    assert Completion.model_validate(finished).choices[0].finish_reason == "stop"


def test_an_error_frame_is_the_envelope() -> None:
    assert decoded(sse.error_frame(StepError("broke")))["error"]["reason"] == "step_failed"
    assert sse.DONE == b"data: [DONE]\n\n"
    assert sse.frame(b"{}") == b"data: {}\n\n"
    assert sse.KEEP_ALIVE.startswith(b":")
