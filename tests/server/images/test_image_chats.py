"""Chats with images over HTTP: answers are those of transformers, whatever runs beside them; bad images hurt nobody."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from openai import OpenAI
from PIL import Image

from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.images.template_messages import reads_parts
from tests.models.vision.test_image_decoding import png_of_zeros
from tests.models.vision.tiny_vision import TEMPLATE, TinyVision, encoded, picture, tiny_vision
from tests.server.api import error, ok
from tests.server.live import live

COUNT = 6
ONE, OTHER = picture(70, 50), picture(70, 50, 4)
GREEDY = {"temperature": 0, "max_tokens": COUNT, "min_tokens": COUNT}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyVision:
    return tiny_vision(tmp_path_factory.mktemp("vision"))


@pytest.fixture(scope="module")
def url(tiny: TinyVision) -> Iterator[str]:
    engine = AsyncEngine(
        EngineConfig(
            str(tiny.folder), dtype="float32", max_model_len=400, kv_cache_memory_bytes=16 << 20, limit_mm_per_prompt={"image": 3},
            served_model_name=("tiny",), max_num_batched_tokens=64,
        )
    )  # fmt: skip
    engine.start()
    while not engine.is_ready:
        assert engine.dead_reason is None
        time.sleep(0.01)
    with live(engine) as server:
        yield server.url
    asyncio.run(engine.shutdown())


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def image(data: bytes | Image.Image, kind: str = "image/png") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(data if isinstance(data, bytes) else encoded(data), kind)}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def user(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def post(url: str, messages: list[dict[str, Any]], **fields: Any) -> httpx.Response:
    return httpx.post(f"{url}/v1/chat/completions", json={"messages": messages, **GREEDY, **fields}, timeout=60)


def tokens(url: str, messages: list[dict[str, Any]], **fields: Any) -> list[int]:
    found: list[int] = ok(post(url, messages, return_token_ids=True, **fields))["choices"][0]["token_ids"]
    return found


ASKED = user(image(ONE), text("What is this?"))
PROMPT = "User:<image>What is this?<end_of_utterance>\nAssistant:"


def test_answers_are_those_of_transformers(url: str, tiny: TinyVision) -> None:
    wide = {"logprobs": True, "top_logprobs": 3}
    answer = ok(post(url, ASKED, return_token_ids=True, **wide))
    want = tiny.greedy(PROMPT, [ONE], COUNT)
    assert answer["choices"][0]["token_ids"] == want
    given = tiny.inputs(PROMPT, [ONE])
    assert answer["prompt_token_ids"] == given["input_ids"][0].tolist()
    assert answer["usage"]["prompt_tokens"] == given["input_ids"].shape[1]
    first = tiny.logprobs(PROMPT, [ONE])[-1]
    shown = answer["choices"][0]["logprobs"]["content"][0]
    assert shown["logprob"] == pytest.approx(float(first[want[0]]), abs=1e-4)


def test_the_same_question_about_another_image(url: str, tiny: TinyVision) -> None:
    """Its tokens are in the prefix cache, with another image behind them."""
    for seen in (ONE, OTHER, ONE):
        assert tokens(url, user(image(seen), text("What is this?"))) == tiny.greedy(PROMPT, [seen], COUNT)


def test_many_at_once(url: str, tiny: TinyVision) -> None:
    pictures = [picture(20 + 30 * i, 60, i) for i in range(4)]
    asked = [user(image(each), text(f"No. {i}")) for i, each in enumerate(pictures)] + [[{"role": "user", "content": "Only text"}]]
    want = [tiny.greedy(f"User:<image>No. {i}<end_of_utterance>\nAssistant:", [each], COUNT) for i, each in enumerate(pictures)]
    want.append(tiny.greedy("User: Only text<end_of_utterance>\nAssistant:", [], COUNT))
    with ThreadPoolExecutor(5) as pool:
        assert list(pool.map(lambda messages: tokens(url, messages), asked)) == want


def test_a_talk_with_images_in_several_messages(url: str, tiny: TinyVision) -> None:
    messages = [
        {"role": "system", "content": [text("See"), image(OTHER)]}, *user(text("One"), image(ONE), text("and")),
        {"role": "assistant", "content": "Yes"}, {"role": "user", "content": "Why?"},
    ]  # fmt: skip
    prompt = "System: See<image><end_of_utterance>\nUser: One<image>and<end_of_utterance>\nAssistant: Yes<end_of_utterance>\nUser: Why?<end_of_utterance>\nAssistant:"
    assert tokens(url, messages) == tiny.greedy(prompt, [OTHER, ONE], COUNT)


def test_several_choices(url: str, tiny: TinyVision) -> None:
    answer = ok(post(url, ASKED, n=2, temperature=1, top_k=1, return_token_ids=True))
    assert [choice["token_ids"] for choice in answer["choices"]] == [tiny.greedy(PROMPT, [ONE], COUNT)] * 2


def test_streamed_through_the_sdk(url: str) -> None:
    whole = ok(post(url, ASKED))["choices"][0]["message"]["content"]
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    chunks = client.chat.completions.create(model="tiny", messages=ASKED, stream=True, temperature=0, max_tokens=COUNT, extra_body={"min_tokens": COUNT})  # type: ignore[call-overload]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole


def test_the_other_apis(url: str, tiny: TinyVision) -> None:
    count = tiny.inputs(PROMPT, [ONE])["input_ids"].shape[1]
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(encoded(ONE)).decode()}}
    body = {"model": "tiny", "max_tokens": 3, "messages": user(block, text("What is this?"))}
    assert ok(httpx.post(f"{url}/v1/messages", json=body, timeout=60))["usage"]["input_tokens"] == count
    assert ok(httpx.post(f"{url}/v1/messages/count_tokens", json={"model": "tiny", "messages": body["messages"]}, timeout=60)) == {"input_tokens": count}
    asked = [{"role": "user", "content": [{"type": "input_image", "image_url": data_url(encoded(ONE))}, {"type": "input_text", "text": "What is this?"}]}]
    answer = ok(httpx.post(f"{url}/v1/responses", json={"model": "tiny", "input": asked, "max_output_tokens": 3, "store": False}, timeout=60))
    assert answer["usage"]["input_tokens"] == count


def test_texts_alone_are_rendered_as_parts(url: str, tiny: TinyVision) -> None:
    answer = ok(httpx.post(f"{url}/tokenize", json={"messages": [{"role": "user", "content": "Hi"}]}, timeout=60))
    assert answer["tokens"] == tiny.inputs("User: Hi<end_of_utterance>\nAssistant:", [])["input_ids"][0].tolist()


def test_a_template_that_takes_texts_gets_marks(url: str, tiny: TinyVision) -> None:
    plain = "{% for message in messages %}{{ message['content'] }}{% endfor %}!"
    assert reads_parts(TEMPLATE)
    assert not reads_parts(plain)
    refused = error(post(url, ASKED, chat_template=plain), 400, "chat_template_untrusted")
    assert "trust-request-chat-template" in refused["message"]


@pytest.mark.parametrize(("parts", "reason", "param"), [
    ([image(b"nothing")], "invalid_image", "messages[0].content[0]"),
    ([image(encoded(ONE)[:200])], "invalid_image", "messages[0].content[0]"),
    ([text("a"), image(png_of_zeros(60_000, 60_000))], "invalid_image", "messages[0].content[1]"),
    ([image(png_of_zeros(12_000, 12_000))], "invalid_image", "messages[0].content[0]"),
    ([image(b"<svg/>", "image/svg+xml")], "image_url_unsupported", "messages[0].content[0]"),
    ([image(b"<svg/>")], "invalid_image", "messages[0].content[0]"),
    ([image(encoded(ONE), "text/html")], "image_url_unsupported", "messages[0].content[0]"),
    ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,@@@@"}}], "invalid_image", "messages[0].content[0]"),
    ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAA"}}], "invalid_image", "messages[0].content[0]"),
    ([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}], "not_built", "messages[0].content[0]"),
    ([{"type": "image_url", "image_url": {"url": "FILE:///etc/passwd"}}], "not_built", "messages[0].content[0]"),
    ([{"type": "image_url", "image_url": {"url": "ftp://example.org/a.png"}}], "image_url_unsupported", "messages[0].content[0]"),
    ([{"type": "image_url", "image_url": {}}], "body_invalid", "messages[0].content[0]"),
    ([{"type": "image_url"}], "body_invalid", "messages[0].content[0]"),
    ([{"type": "image"}], "content_part_unsupported", "messages[0].content[0]"),
    ([{"type": "input_audio", "input_audio": {}}], "content_part_unsupported", "messages[0].content[0]"),
    ([image(ONE)] * 4, "too_many_images", "messages[0].content[3]"),
    ([image(ONE), text("a <image> of it")], "image_mark_in_text", "messages[0].content[1]"),
])  # fmt: skip
def test_images_that_are_refused(parts: list[dict[str, Any]], reason: str, param: str, url: str) -> None:
    response = post(url, user(*parts))
    error(response, 400, reason, param)


def test_an_image_of_too_many_bytes(url: str) -> None:
    huge = "data:image/png;base64," + "A" * (23 << 20)
    error(post(url, user({"type": "image_url", "image_url": {"url": huge}})), 400, "image_too_large", "messages[0].content[0]")


@pytest.mark.parametrize("fields", [{"use_beam_search": True, "n": 2}, {"truncate_prompt_tokens": 10}, {"mm_processor_kwargs": {"a": 1}}])
def test_fields_that_do_not_go_with_images(fields: dict[str, Any], url: str) -> None:
    response = httpx.post(f"{url}/v1/chat/completions", json={"messages": ASKED, "max_tokens": 3, **fields}, timeout=60)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == next(iter(fields))


def test_images_that_do_not_fit_the_context(url: str) -> None:
    error(post(url, user(*[image(picture(90, 90, i)) for i in range(3)], text("word " * 60))), 400, "context_length_exceeded")


def test_images_are_read_in_chats_alone(url: str) -> None:
    response = httpx.post(f"{url}/tokenize", json={"messages": ASKED}, timeout=60)
    error(response, 400, "content_part_unsupported", "messages[0].content[0]")


def test_bad_images_hurt_nobody(url: str, tiny: TinyVision) -> None:
    want = tiny.greedy(PROMPT, [ONE], COUNT)
    with ThreadPoolExecutor(6) as pool:
        asked = [ASKED, user(image(b"x")), ASKED, user(image(png_of_zeros(7_000, 7_000))), ASKED]
        statuses = list(pool.map(lambda messages: (r := post(url, messages, return_token_ids=True)).status_code == 200 and json.loads(r.text), asked))
    assert [status and status["choices"][0]["token_ids"] for status in statuses] == [want, False, want, False, want]


def test_a_model_that_reads_text_says_so(make_api: Any) -> None:
    refused = error(make_api().post("/v1/chat/completions", {"messages": ASKED}), 400, "content_part_unsupported", "messages[0].content[0]")
    assert "takes text only" in refused["message"]
