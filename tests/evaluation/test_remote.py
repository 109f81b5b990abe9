"""A server instead of a model: what is asked of it, and what is said when it cannot answer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from headway.errors import HeadwayError
from headway.evaluation.evaluate import evaluate, evaluate_server
from headway.evaluation.evaluation import Evaluation
from headway.evaluation.remote import RemoteModel
from headway.evaluation.request import EvaluationRequest
from headway.evaluation.scoring import ScoringRequest
from headway.evaluation.task_file import Question, Task
from headway.evaluation.texts import Text
from tests.evaluation.answering_server import Answer, answering

MODELS: Answer = lambda body: (200, {"data": [{"id": "m", "max_model_len": 41}]})  # noqa: E731


def letters(body: dict[str, Any]) -> tuple[int, Any]:
    """Token 7 begins a text."""
    return 200, {"tokens": [7] * body["add_special_tokens"] + [ord(letter) for letter in body["prompt"]]}


def scored(body: dict[str, Any]) -> tuple[int, Any]:
    """The log-probability of a token is minus the number of those before it, of the first there is none; one token is made."""
    assert (body["echo"], body["logprobs"], body["model"]) == (True, 1, "m")
    choices = [
        {"index": place, "logprobs": {"token_logprobs": [None, *(-float(i) for i in range(1, len(prompt))), -99.0]}}
        for place, prompt in enumerate(body["prompt"])
    ]
    return 200, {"choices": choices[::-1]}


def asked(url: str, request: EvaluationRequest, tokenizer: str | None = None) -> Evaluation:
    return evaluate_server(url, None, tokenizer, None, request)


def test_texts_and_questions_by_the_tokenizer_of_the_server() -> None:
    task = Task("t", (Question("who", ("a", "bb"), 1),))
    with answering({"/v1/models": MODELS, "/tokenize": letters, "/v1/completions": scored}) as url:
        found = asked(url + "/v1/", EvaluationRequest((Text("x", "abcdefghij"),), (task,)))
    assert found.measured is not None
    assert found.measured.texts[0].text.prefix == (7,)
    assert found.measured.texts[0].logprobs.tolist() == [-float(i) for i in range(1, 11)]
    assert [each.tolist() for each in found.measured.tasks[0].logprobs] == [[-4.0 - 5, -4.0 - 5 - 6]]  # a space is a token
    assert found.model == f"m at {url}"


def test_sequences_leave_room_for_the_token_that_is_asked_for() -> None:
    seen: list[int] = []

    def noted(body: dict[str, Any]) -> tuple[int, Any]:
        seen.extend(len(prompt) for prompt in body["prompt"])
        return scored(body)

    with answering({"/v1/models": MODELS, "/tokenize": letters, "/v1/completions": noted}) as url:
        asked(url, EvaluationRequest((Text("x", "abcdefghij" * 12),), ()))
    assert max(seen) == 40


@pytest.mark.parametrize(
    ("answers", "reason", "said"),
    [
        ({}, "refused", "no such route"),
        ({"/v1/models": lambda body: (200, b"hello")}, "refused", "without JSON"),
        ({"/v1/models": MODELS}, "refused", "/tokenize answered 404"),
        ({"/v1/models": MODELS, "/tokenize": lambda body: (200, {"tokens": "x"})}, "refused", "no list of token ids"),
        ({"/v1/models": MODELS, "/tokenize": letters, "/v1/completions": lambda body: (200, {"choices": []})}, "refused", "1 prompts got 0 answers"),
        ({"/v1/models": MODELS, "/tokenize": letters, "/v1/completions": lambda body: (200, {"choices": [{"index": 0, "text": "x", "logprobs": None}]})},
         "prompt_logprobs_missing", "does not give the log-probabilities of a prompt"),
        ({"/v1/models": MODELS, "/tokenize": letters, "/v1/completions": lambda body: (400, {"error": {"message": "too long"}})}, "refused", "too long"),
    ],
)  # fmt: skip
def test_servers_that_cannot_answer(answers: dict[str, Answer], reason: str, said: str) -> None:
    with answering(answers) as url, pytest.raises(HeadwayError) as refused:
        asked(url, EvaluationRequest((Text("x", "abcdef"),), ()))
    assert refused.value.reason == reason
    assert said in refused.value.message


def test_nobody_there() -> None:
    with pytest.raises(HeadwayError) as refused:
        asked("http://127.0.0.1:9", EvaluationRequest((Text("x", "abcdef"),), ()))
    assert refused.value.reason == "no_server"


def test_log_probabilities_that_are_no_numbers_fail() -> None:
    def nothing(body: dict[str, Any]) -> tuple[int, Any]:
        return 200, {"choices": [{"index": 0, "logprobs": {"token_logprobs": [None] * 20}}]}

    with answering({"/v1/models": MODELS, "/tokenize": letters, "/v1/completions": nothing}) as url:
        found = asked(url, EvaluationRequest((Text("x", "abcdef"),), ()))
    assert found.decision == "fail"
    assert found.problem is not None
    assert "not numbers" in found.problem


def test_minus_infinity_as_servers_write_it() -> None:
    def impossible(body: dict[str, Any]) -> tuple[int, Any]:
        return 200, {"choices": [{"index": 0, "logprobs": {"token_logprobs": [None, -9999.0, -1.0]}}]}

    with answering({"/v1/models": MODELS, "/v1/completions": impossible}) as url, RemoteModel(url, None, None) as remote:
        [found] = remote.logprobs_of([ScoringRequest((1, 2, 3), 1)], lambda tokens: None)
    assert found.tolist() == [-math.inf, -1.0]


def test_against_a_baseline_without_distributions(trained: Path) -> None:
    """The baseline runs here; its tokenizer is the one that is used. The server says the same to everything: it fails."""
    sample = Text("x", "The old farmer walked slowly to the market. " * 20)
    with answering({"/v1/models": MODELS, "/v1/completions": scored}) as url:
        found = asked(url, EvaluationRequest((sample,), (), str(trained), dtype="float32"), tokenizer=str(trained))
    assert found.decision == "fail"
    assert found.comparison is not None
    assert found.comparison.divergence_missing == "a server does not give whole distributions"
    assert found.as_json()["comparison"]["kl"] is None
    base = evaluate(str(trained), EvaluationRequest((sample,), (), dtype="float32", max_length=40)).as_json()
    assert found.as_json()["texts"]["against"]["perplexity"] == pytest.approx(base["texts"]["model"]["perplexity"])
