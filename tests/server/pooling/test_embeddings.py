"""Embeddings, pooling and classification over HTTP; the official client reads them."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable

import httpx
import numpy as np
import openai
import pytest
import torch

from headway.engine.pooling.class_head import ClassHead
from headway.engine.pooling.pooler import Pooler
from tests.server.api import USER, Api, error, ok
from tests.server.live import live
from tests.server.scripted_engine import HIDDEN, ScriptedEngine

EMBEDDINGS = "/v1/embeddings"


def unit(ones: int, width: int = HIDDEN) -> list[float]:
    """What the scripted engine says of a prompt with so many tokens."""
    return [ones**-0.5] * min(ones, width) + [0.0] * max(0, width - ones)


def test_the_official_client_reads_vectors() -> None:
    """It asks for base64 and decodes it."""
    with live(ScriptedEngine()) as server, openai.OpenAI(base_url=server.url + "/v1", api_key="k", http_client=httpx.Client(trust_env=False)) as client:
        made = client.embeddings.create(model="tiny", input=["a", "abc"])
        assert [each.index for each in made.data] == [0, 1]
        assert [each.embedding for each in made.data] == [pytest.approx(unit(1)), pytest.approx(unit(3))]
        assert (made.object, made.usage.prompt_tokens, made.usage.total_tokens) == ("list", 4, 4)
        plain = client.embeddings.create(model="tiny", input=[[1, 2, 3]], encoding_format="float", dimensions=2)
        assert plain.data[0].embedding == pytest.approx([2**-0.5, 2**-0.5])
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="no-such", input="a")
        with pytest.raises(openai.BadRequestError) as bad:
            client.embeddings.create(model="tiny", input="a", dimensions=HIDDEN + 1)
        assert bad.value.param == "dimensions"


def test_forms_of_input(api: Api) -> None:
    for given, tokens in (("ab", 2), (["ab", "c"], 3), ([97, 98, 99], 3), ([[97], [98, 99]], 3)):
        body = ok(api.post(EMBEDDINGS, {"input": given}))
        assert body["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
        assert body["id"].startswith("embd-")
    talk = ok(api.post(EMBEDDINGS, {"messages": USER}))
    assert talk["usage"]["prompt_tokens"] == len("[user]Hi\n")
    text = ok(api.post(EMBEDDINGS, {"input": "ab", "encoding_format": "base64", "use_activation": False}))["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(text), "<f4").tolist() == [1, 1, *[0] * (HIDDEN - 2)]
    cut = ok(api.post(EMBEDDINGS, {"input": "abcdef", "truncate_prompt_tokens": 2}))
    assert cut["data"][0]["embedding"] == pytest.approx(unit(2))


@pytest.mark.parametrize(
    ("body", "reason", "param"),
    [
        ({}, "body_invalid", "input"), ({"input": "a", "messages": USER}, "body_invalid", "input"), ({"input": []}, "body_invalid", None),
        ({"input": ""}, "empty_prompt", "input"), ({"input": [[]]}, "empty_prompt", "input"), ({"input": [999]}, "token_out_of_vocabulary", "input"),
        ({"input": "a" * 201}, "context_length_exceeded", "input_tokens"), ({"input": "a", "dimensions": 0}, "body_invalid", "dimensions"),
        ({"input": "a", "encoding_format": "bytes"}, "body_invalid", "encoding_format"), ({"input": "a", "priority": 3}, "invalid_request", "priority"),
        ({"input": "a", "truncate_prompt_tokens": 0}, "body_invalid", "truncate_prompt_tokens"), ({"input": ["a"] * 1025}, "body_invalid", None),
    ],
)  # fmt: skip
def test_wrong_bodies(api: Api, body: dict[str, object], reason: str, param: str | None) -> None:
    error(api.post(EMBEDDINGS, body), 400, reason, param)
    assert not api.engine.active


def test_untrained_vectors_are_marked_and_logged_once(make_api: Callable[..., Api], caplog: pytest.LogCaptureFixture) -> None:
    untrained, trained = make_api(), make_api()
    trained.engine.pooler = Pooler(HIDDEN, generates=False, is_trained=True)
    with caplog.at_level(logging.WARNING):
        for path in (EMBEDDINGS, "/pooling"):
            assert untrained.post(path, {"input": "secret text"}).headers["x-headway-embedding"] == "untrained"
        assert "x-headway-embedding" not in trained.post(EMBEDDINGS, {"input": "a"}).headers
    told = [r.getMessage() for r in caplog.records if "trained to generate" in r.getMessage()]
    assert len(told) == 1
    assert "secret" not in caplog.text


def test_pooling(make_api: Callable[..., Api]) -> None:
    api = make_api(ScriptedEngine(max_model_len=1 << 20))
    whole = ok(api.post("/pooling", {"input": "ab", "dimensions": 2}))
    assert (whole["data"][0]["object"], whole["data"][0]["index"]) == ("pooling", 0)
    assert whole["data"][0]["data"] == [pytest.approx([2**-0.5] * 2)] * 2
    assert ok(api.post("/pooling", {"input": "abc", "task": "embed"}))["data"][0]["data"] == pytest.approx(unit(3))
    assert "limit of one answer" in error(api.post("/pooling", {"input": "a" * 600_000}), 400, "invalid_request", "input")["message"]
    error(api.post("/pooling", {"input": "a", "task": "classify"}), 400, "task_unsupported", "model")


def test_classify(api: Api) -> None:
    error(api.post("/classify", {"input": "a"}), 400, "task_unsupported", "model")
    weight = torch.zeros(3, HIDDEN)
    weight[1, 2] = 2.0
    api.engine.pooler = Pooler(HIDDEN, head=ClassHead(weight, ("good", "bad", "ugly"), "softmax"), generates=False)
    body = ok(api.post("/classify", {"input": ["abc", "a"]}))
    want = torch.softmax(torch.tensor([0.0, 2.0, 0.0]), -1).tolist()
    assert body["data"][0] == {"index": 0, "label": "bad", "probs": pytest.approx(want), "num_classes": 3}
    assert body["data"][1]["probs"] == pytest.approx([1 / 3] * 3)
    assert ok(api.post("/classify", {"input": "abc", "use_activation": False}))["data"][0]["probs"] == [0, 2, 0]
    assert ok(api.post("/pooling", {"input": "abc"}))["data"][0]["data"] == pytest.approx(want)
    for path, other in (("/score", {"text_1": "a", "text_2": "b"}), ("/rerank", {"query": "a", "documents": ["b"]})):
        error(api.post(path, other), 400, "task_unsupported", "model")
