"""The official client against the application on a real socket."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.server.live import Live, live
from tests.server.scripted_engine import ScriptedEngine

USER: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    with live(ScriptedEngine("Grüße 🙂".encode()), api_key=("k",)) as running:
        yield running


def client_of(server: Live, key: str = "k") -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0, http_client=httpx.Client(trust_env=False))


@pytest.fixture
def client(server: Live) -> Iterator[openai.OpenAI]:
    with client_of(server) as made:
        yield made


def test_models(client: openai.OpenAI) -> None:
    assert [m.id for m in client.models.list()] == ["tiny"]


def test_chat_streamed_and_not(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="tiny", messages=USER)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("Grüße 🙂", "stop")
    chunks = list(client.chat.completions.create(model="tiny", messages=USER, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.delta.content or "" for k in chunks for c in k.choices) == "Grüße 🙂"
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens


def test_logprobs(client: openai.OpenAI) -> None:
    logprobs = client.chat.completions.create(model="tiny", messages=USER, logprobs=True, top_logprobs=2, max_tokens=2).choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert [(t.token, len(t.top_logprobs)) for t in logprobs.content] == [("G", 2), ("r", 2)]


def test_completions(client: openai.OpenAI) -> None:
    whole = client.completions.create(model="tiny", prompt="x", max_tokens=3, logprobs=1)
    assert whole.choices[0].text == "Gr\ufffd"  # the limit cut a character
    assert whole.choices[0].logprobs is not None
    text = "".join(c.choices[0].text for c in client.completions.create(model="tiny", prompt="x", stream=True))
    assert text == "Grüße 🙂"


def test_errors_have_their_types(client: openai.OpenAI, server: Live) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="no-such", messages=USER)
    assert missing.value.param == "model"
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as bad:
            client.chat.completions.create(model="tiny", messages=USER, temperature=-1, stream=stream)
        assert bad.value.param == "temperature"
    with client_of(server, "wrong") as stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_leaving_a_stream_frees_the_request(server: Live) -> None:
    server.hold(after=2)
    with client_of(server) as client:
        stream = client.chat.completions.create(model="tiny", messages=USER, stream=True)
        next(iter(stream))
        assert len(server.engine.active) == 1
        stream.close()
        server.until(lambda: not server.engine.active)
    server.engine.hold = None
