"""The official `openai` client against a real server process with a real model."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.e2e.served_model import MODEL, Served, serve

pytestmark = pytest.mark.e2e
ASK = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("serve"), "--max-model-len", "2048", "--dtype", "float32") as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=served.url + "/v1", api_key="none", max_retries=0, http_client=httpx.Client(trust_env=False, timeout=60)
    ) as made:
        yield made


def test_models_and_chat(client: openai.OpenAI) -> None:
    assert [m.id for m in client.models.list()] == [MODEL]
    answer = client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=16, temperature=0)  # type: ignore[arg-type]
    assert "Paris" in str(answer.choices[0].message.content)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_says_the_same_as_a_whole_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=ASK, max_tokens=16, temperature=0)  # type: ignore[arg-type]
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=ASK, max_tokens=16, temperature=0, stream=True, stream_options={"include_usage": True}  # type: ignore[arg-type]
        )
    )
    assert "".join(c.delta.content or "" for k in chunks for c in k.choices) == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage
    assert sum(bool(k.choices and k.choices[0].delta.content) for k in chunks) > 3


def test_completions_with_logprobs_and_n(client: openai.OpenAI) -> None:
    one = client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=3, temperature=0, logprobs=2)
    assert one.choices[0].text.startswith(" Paris")
    assert one.choices[0].logprobs is not None
    assert len(one.choices[0].logprobs.tokens or []) == 3
    several = client.completions.create(model=MODEL, prompt="Once upon a time", max_tokens=8, n=3, seed=7, temperature=1.0)
    assert len({c.text for c in several.choices}) == 3


def test_errors_have_the_types_of_the_sdk(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        client.chat.completions.create(model="no-such-model", messages=ASK)  # type: ignore[arg-type]
    with pytest.raises(openai.BadRequestError, match="temperature"):
        client.chat.completions.create(model=MODEL, messages=ASK, temperature=-1)  # type: ignore[arg-type]
    with pytest.raises(openai.BadRequestError, match="maximum context length is 2048 tokens"):
        client.completions.create(model=MODEL, prompt=[5] * 2048, max_tokens=1)


def test_a_client_that_leaves_frees_its_request(client: openai.OpenAI, served: Served) -> None:
    before = served.metric("vllm:generation_tokens_total")
    stream = client.completions.create(model=MODEL, prompt="Once", max_tokens=1500, stream=True, extra_body={"ignore_eos": True})
    for _, _chunk in zip(range(3), stream, strict=False):
        pass
    served.wait_for("busy")
    stream.close()
    served.wait_for("idle")
    assert served.metric("vllm:generation_tokens_total") - before < 1500
    assert served.metric("vllm:kv_cache_usage_perc") == 0


def test_no_prompt_text_in_log_or_metrics(client: openai.OpenAI, served: Served) -> None:
    secret = "zebra-quartz-4711"
    client.completions.create(model=MODEL, prompt=f"{secret} is", max_tokens=4)
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model=MODEL, prompt=f"{secret} is", max_tokens=4, top_p=7)
    assert secret not in served.get("/metrics").text
    assert secret not in served.log.read_text()
