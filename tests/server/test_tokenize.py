"""/tokenize and /detokenize."""

from __future__ import annotations

from collections.abc import Callable

from headway.wire.tokenize import TokenizeBody
from tests.server.api import CHAT, USER, Api, error, ok
from tests.server.scripted_engine import BOS, VOCAB

Make = Callable[..., Api]


def test_text_there_and_back(api: Api) -> None:
    for text in ("Hello, wide world", "naïve 中文 🙂 x", "  two\n\ttab", ""):
        body = ok(api.post("/tokenize", {"prompt": text}))
        assert body == {"count": len(text.encode()), "max_model_len": 200, "tokens": [*text.encode()], "token_strs": None}
        assert ok(api.post("/detokenize", {"tokens": body["tokens"]})) == {"prompt": text}


def test_special_tokens_are_added_to_texts_only(api: Api) -> None:
    api.engine.tokenizer.adds_bos = True
    assert ok(api.post("/tokenize", {"prompt": "a"}))["tokens"] == [BOS, 97]
    assert ok(api.post("/tokenize", {"prompt": "a", "add_special_tokens": False}))["tokens"] == [97]
    assert BOS not in ok(api.post("/tokenize", {"messages": USER}))["tokens"]
    assert BOS in ok(api.post("/tokenize", {"messages": USER, "add_special_tokens": True}))["tokens"]


def test_messages_count_as_in_chat(api: Api) -> None:
    for extra in ({}, {"add_generation_prompt": False}):
        count = ok(api.post("/tokenize", {"messages": USER, **extra}))["count"]
        assert count == ok(api.post(CHAT, {"messages": USER, **extra}))["usage"]["prompt_tokens"]


def test_texts_of_tokens(api: Api) -> None:
    assert ok(api.post("/tokenize", {"prompt": "né", "return_token_strs": True}))["token_strs"] == ["n", "\ufffd", "\ufffd"]


def test_refusals(api: Api) -> None:
    error(api.post("/tokenize", {}), 400, "body_invalid", "prompt")
    error(api.post("/tokenize", {"prompt": "a", "messages": USER}), 400, "body_invalid", "prompt")
    error(api.post("/tokenize", {"prompt": "a", "model": "no-such"}), 404, "model_not_found")
    error(api.post("/tokenize", {"messages": [{"role": "wizard"}]}), 400, param="messages[0].role")
    error(api.post("/tokenize", {"messages": USER, "chat_template": "x"}), 400, "chat_template_untrusted")
    for wrong in ([VOCAB], [-1], [1, 10**30]):
        error(api.post("/detokenize", {"tokens": wrong}), 400, "token_out_of_vocabulary", "tokens")
    error(api.post("/detokenize", {"tokens": ["a"]}), 400, "body_invalid")


def test_long_texts_are_tokenized_whole(api: Api) -> None:
    assert ok(api.post("/tokenize", {"prompt": "x" * 20_000}))["count"] == 20_000
    assert len(ok(api.post("/detokenize", {"tokens": [120] * 20_000}))["prompt"]) == 20_000


def test_fields_have_defaults() -> None:
    assert TokenizeBody.model_validate({"prompt": "x"}).add_special_tokens is None
