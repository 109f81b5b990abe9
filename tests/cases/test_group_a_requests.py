"""Group A, requests that are wrong or at a border: empty prompts (A05), log-probabilities (A07), contexts (A09), ids (A10)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cases.case_server import CaseServer, case_server
from tests.cases.tiny_model import VOCAB, save_tiny_model, tiny_engine
from tests.server.api import CHAT, COMPLETIONS, error

EMPTY_TEMPLATE = "{{ messages[0].content }}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Any:
    return save_tiny_model(folder)


@pytest.fixture(scope="module")
def server(folder: Path, oracle: Any) -> Iterator[CaseServer]:
    with case_server(*tiny_engine(folder)) as running:
        yield running


@pytest.fixture(autouse=True)
def alive_afterwards(server: CaseServer) -> Iterator[None]:
    yield
    server.check_alive()


# ---- A05 -----------------------------------------------------------------------------------------------------------

EMPTY = [{"prompt": ""}, {"prompt": [""]}, {"prompt": [[]]}, {"prompt": []}, {}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body", EMPTY, ids=str)
def test_a05_no_tokens_are_refused(server: CaseServer, body: dict[str, Any], stream: bool) -> None:
    found = error(server.post(COMPLETIONS, {**body, "stream": stream}), 400, param="prompt")
    assert "prompt" in found["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_a05_no_messages_are_refused(server: CaseServer, stream: bool) -> None:
    error(server.post(CHAT, {"messages": [], "stream": stream}), 400, param="messages")


def test_a05_an_empty_message_has_the_template_around_it(server: CaseServer) -> None:
    answer = server.chat(messages=[{"role": "user", "content": ""}], max_tokens=2).json()
    assert answer["usage"]["prompt_tokens"] == len("<|user|>\n<|assistant|>")


def test_a05_a_template_that_gives_nothing(folder: Path, oracle: Any) -> None:
    with case_server(*tiny_engine(folder), chat_template=EMPTY_TEMPLATE) as running:
        error(running.chat(messages=[{"role": "user", "content": ""}]), 400, reason="empty_prompt")
        running.check_alive()


def test_a05_a_first_token_of_its_own_makes_a_prompt(tmp_path: Path) -> None:
    save_tiny_model(tmp_path, bos=True)
    with case_server(*tiny_engine(tmp_path)) as running:
        for prompt, count in (("", 1), ([""], 1), (["", "a"], 3)):
            assert running.complete(prompt=prompt, max_tokens=2).json()["usage"]["prompt_tokens"] == count
        error(running.complete(prompt="", add_special_tokens=False), 400)
        error(running.complete(prompt=[[]]), 400)
        assert running.chat(messages=[{"role": "user", "content": ""}], max_tokens=2).status_code == 200
        running.check_alive()


# ---- A07 -----------------------------------------------------------------------------------------------------------

PROMPT = "café 🙂 x"


TOKENIZER_SIZE = 258


def _log_softmax(oracle: Any, ids: list[int]) -> torch.Tensor:
    """[T, tokens of the tokenizer] of the model itself: rows of the matrix that no token has are no tokens."""
    with torch.no_grad():
        return torch.log_softmax(oracle(torch.tensor([ids])).logits[0, :, :TOKENIZER_SIZE].double(), -1)


def test_a07_chat_without_alternatives(server: CaseServer) -> None:
    content = server.chat(logprobs=True, max_tokens=3, ignore_eos=True).json()["choices"][0]["logprobs"]["content"]
    assert len(content) == 3
    assert all(entry.keys() == {"token", "logprob", "bytes", "top_logprobs"} for entry in content)
    assert [entry["top_logprobs"] for entry in content] == [[], [], []]


def test_a07_values_are_those_of_the_model_at_every_temperature(server: CaseServer, oracle: Any) -> None:
    for temperature in (0, 1.5):
        body = {"logprobs": True, "top_logprobs": 2, "temperature": temperature, "seed": 3, "max_tokens": 6, "ignore_eos": True}
        answer = server.chat(**body, return_token_ids=True).json()
        choice = answer["choices"][0]
        ids = answer["prompt_token_ids"] + choice["token_ids"]
        expected = _log_softmax(oracle, ids)
        for i, entry in enumerate(choice["logprobs"]["content"]):
            row = expected[len(answer["prompt_token_ids"]) + i - 1]
            assert entry["logprob"] == pytest.approx(row[choice["token_ids"][i]].item(), abs=2e-4)
            best = row.topk(2).values.tolist()
            assert [top["logprob"] for top in entry["top_logprobs"]] == pytest.approx(best, abs=2e-4)


def test_a07_a_token_outside_the_best_is_there_all_the_same(server: CaseServer) -> None:
    body = {"logprobs": True, "top_logprobs": 1, "temperature": 2, "seed": 1, "max_tokens": 12, "ignore_eos": True}
    content = server.chat(**body).json()["choices"][0]["logprobs"]["content"]
    outside = [entry for entry in content if entry["logprob"] < entry["top_logprobs"][0]["logprob"] - 1e-9]
    assert outside  # at temperature 2 a random model rarely takes its best token
    assert all(len(entry["top_logprobs"]) == 1 for entry in content)


def test_a07_echoed_lists_are_parallel_and_count_code_points(server: CaseServer, oracle: Any) -> None:
    answer = server.complete(prompt=PROMPT, echo=True, logprobs=2, max_tokens=2, ignore_eos=True, return_token_ids=True).json()
    choice = answer["choices"][0]
    lists = choice["logprobs"]
    prompt = PROMPT.encode()
    assert {len(lists[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")} == {len(prompt) + 2}
    assert lists["token_logprobs"][0] is None
    assert lists["top_logprobs"][0] is None
    starts = [len(prompt[:i].decode("utf-8", "ignore")) for i in range(len(prompt))]
    assert lists["text_offset"][: len(prompt)] == starts
    assert lists["text_offset"][len(prompt)] == len(PROMPT)
    assert lists["tokens"][0] == "c"
    assert all(len(token) <= 5 for token in lists["tokens"][: len(prompt)])  # its own piece, never the text so far
    ids = choice["prompt_token_ids"] + choice["token_ids"]
    expected = _log_softmax(oracle, ids)
    for i in range(1, len(ids)):
        assert lists["token_logprobs"][i] == pytest.approx(expected[i - 1, ids[i]].item(), abs=2e-4)


# ---- A09 -----------------------------------------------------------------------------------------------------------

LIMITS: tuple[dict[str, int], ...] = ({}, {"max_tokens": 1}, {"max_tokens": 10}, {"max_completion_tokens": 10})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("count", [60, 64, 65, 5000])
def test_a09_prompt_and_limit_against_the_context(server: CaseServer, count: int, limit: dict[str, int], stream: bool) -> None:
    """One rule: a prompt that leaves no room is refused, a limit beyond the room ends with `length` at the context."""
    around = len("<|user|>\n<|assistant|>")
    body = {"messages": [{"role": "user", "content": "a" * (count - around)}], "ignore_eos": True, "temperature": 0, **limit}
    response = server.post(CHAT, {**body, "stream": stream, **({"stream_options": {"include_usage": True}} if stream else {})})
    if count >= 64:
        found = error(response, 400, reason="context_length_exceeded")
        assert "maximum context length is 64 tokens" in found["message"]
        assert f"{count} tokens" in found["message"]
        return
    expected = min(4, *limit.values()) if limit else 4
    assert response.status_code == 200
    if stream:
        assert f'"completion_tokens":{expected}' in response.text
        assert '"finish_reason":"length"' in response.text
    else:
        assert response.json()["usage"]["completion_tokens"] == expected
        assert response.json()["choices"][0]["finish_reason"] == "length"


# ---- A10 -----------------------------------------------------------------------------------------------------------

BAD_IDS: dict[str, tuple[dict[str, Any], str]] = {
    "bias beyond": ({"logit_bias": {str(VOCAB + 5): 5}}, "logit_bias"),
    "bias negative": ({"logit_bias": {"-1": 5}}, "logit_bias"),
    "stop beyond": ({"stop_token_ids": [VOCAB], "min_tokens": 1}, "stop_token_ids"),
    "stop negative": ({"stop_token_ids": [-1]}, "stop_token_ids"),
    "nothing allowed": ({"allowed_token_ids": []}, "allowed_token_ids"),
    "allowed beyond": ({"allowed_token_ids": [VOCAB]}, "allowed_token_ids"),
    "allowed is banned": ({"allowed_token_ids": [9], "bad_words": None}, "bad_words"),
    "bias without bound": ({"logit_bias": {"3": 1e308}}, "logit_bias"),
    "prompt beyond": ({"prompt": [VOCAB]}, "prompt"),
    "prompt negative": ({"prompt": [-1]}, "prompt"),
    "prompt huge": ({"prompt": [2**70]}, "prompt"),
}


@pytest.mark.parametrize("name", list(BAD_IDS))
def test_a10_ids_outside_the_vocabulary(server: CaseServer, name: str) -> None:
    body, field = BAD_IDS[name]
    if name == "allowed is banned":
        body = {**body, "bad_words": [server.engine.tokenizer.decode([9])]}
    neighbour = {"prompt": "neighbour", "max_tokens": 40, "ignore_eos": True}
    alone = server.complete(**neighbour).json()["choices"][0]["text"]
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(lambda: server.complete(**neighbour).json()["choices"][0]["text"])
        found = [error(server.complete(**{"prompt": "x", **body, "stream": stream}), 400) for stream in (False, True) for _ in range(5)]
        assert running.result(20) == alone
    for entry in found:
        assert entry["param"] in (field, "allowed_token_ids")
        assert field in entry["message"] or "allowed_token_ids" in entry["message"]


def test_a10_the_bound_is_the_vocabulary_of_the_model(server: CaseServer) -> None:
    """The tokenizer knows 258 tokens, the model 270."""
    assert server.complete(logit_bias={str(VOCAB - 1): 5}, max_tokens=1).status_code == 200
    assert server.complete(prompt=[VOCAB - 1], max_tokens=1).status_code == 200
