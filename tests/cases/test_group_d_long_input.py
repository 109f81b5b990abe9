"""D01, D03, D05: long input on every entry point, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headway.artifacts.tokenizer import tokenizer_at
from tests.runtime.live_worker import LiveWorker, live_worker
from tests.runtime.tasks.planted_models import ATTACK, LIMIT, AttackDetector
from tests.runtime.tasks.task_models import TaskModels

WORD = "the "  # one token


@pytest.fixture(scope="module")
def task_models(tmp_path_factory: pytest.TempPathFactory) -> TaskModels:
    return TaskModels(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def worker(task_models: TaskModels) -> Iterator[LiveWorker]:
    variants = ("embedding-bert", "sequence-bert", "token-bert", "rerank-bert", "entailment-bert")
    with live_worker({variant: task_models.load(variant) for variant in variants}) as running:
        yield running


def words(tokens: int) -> str:
    """A text that makes `tokens` with its two special tokens."""
    return WORD * (tokens - 2)


def ids(task_models: TaskModels, tokens: int) -> list[int]:
    tokenizer = tokenizer_at(task_models.folder("embedding-bert"))
    return tokenizer.encode(words(tokens), add_special_tokens=False)


LENGTHS = (510, 511, 512, 513, 5000)


def test_d01_embeddings_in_every_shape(worker: LiveWorker, task_models: TaskModels) -> None:
    for tokens in LENGTHS:
        shapes: list[tuple[Any, int]] = [
            (words(tokens), 0), ([words(tokens)], 0), (["a", words(tokens), "b"], 1), (ids(task_models, tokens), 0), ([ids(task_models, tokens)], 0),
        ]  # fmt: skip
        for given, index in shapes:
            single = isinstance(given, str) or isinstance(given[0], int)
            rejected = worker.post("/v1/embeddings", {"model": "embedding-bert", "input": given})
            if tokens <= LIMIT:
                assert rejected.status_code == 200
                assert rejected.json()["data"][index]["input"] == {"tokens": tokens, "processed_tokens": tokens, "truncated": False}
            elif single:
                assert rejected.status_code == 400
                message = rejected.json()["error"]["message"]
                assert "the limit is 512" in message
                assert f"has {tokens} tokens" in message or "has at least " in message
            else:
                assert rejected.status_code == 200
                failed = rejected.json()["data"][index]
                assert failed["error"] == "max_length_exceeded"
                assert f"input {index} has " in failed["message"]
                assert all("embedding" in entry for i, entry in enumerate(rejected.json()["data"]) if i != index)
            cut = worker.post("/v1/embeddings", {"model": "embedding-bert", "input": given, "options": {"overflow": "truncate"}})
            used = cut.json()["data"][index]["input"]
            assert used["processed_tokens"] == min(tokens, LIMIT)
            assert used["truncated"] is (tokens > LIMIT)
        windowed = worker.post("/v1/embeddings", {"model": "embedding-bert", "input": "a", "options": {"overflow": "window"}})
        assert windowed.status_code == 400


@pytest.mark.parametrize("model", ["sequence-bert", "token-bert"])
def test_d01_classifiers_in_every_shape_and_policy(worker: LiveWorker, model: str) -> None:
    for tokens in LENGTHS:
        for given, index in ((words(tokens), 0), ([words(tokens)], 0), (["a", words(tokens), "b"], 1)):
            for overflow in ("reject", "truncate", "window"):
                body = worker.post("/v1/classify", {"model": model, "input": given, "options": {"overflow": overflow}}).json()
                result = body["results"][index]
                if overflow == "reject" and tokens > LIMIT:
                    assert result["error"] == "max_length_exceeded"
                    assert f"input {index} has " in result["message"]
                    assert "the limit is 512" in result["message"]
                    continue
                used = result["input"]
                read = tokens if overflow == "window" else min(tokens, LIMIT)
                assert used["processed_tokens"] == read
                assert used["truncated"] is (read < tokens)
                assert used["tokens"] == tokens or used["tokens_lower_bound"]
                assert ("windows" in used) is (overflow == "window")
                assert all("error" not in other for other in body["results"])


def test_d01_rerank_and_questions(worker: LiveWorker) -> None:
    for tokens in LENGTHS:
        # A pair has a third special token, and the other text has one token.
        fits = tokens + 2 <= LIMIT
        for query, document in (("a", words(tokens)), (words(tokens), "a")):
            results = worker.post("/v1/rerank", {"model": "rerank-bert", "query": query, "documents": [document, "a"]}).json()["results"]
            found = next(result for result in results if result["index"] == 0)
            assert ("error" not in found) is fits
            if not fits:
                assert found["error"] == "max_length_exceeded"
                assert "document 0 has " in found["message"]
                assert "the limit is 512" in found["message"]
        refused = worker.post("/v1/rerank", {"model": "rerank-bert", "query": "a", "documents": ["a"], "options": {"overflow": "truncate"}})
        assert refused.status_code == 400
        question = {"type": "noul", "instructions": "the"}
        asked = {"model": "entailment-bert", "state": words(tokens), "questions": {"q": question}}
        answers = worker.post("/v1/decisions", asked | {"options": {"return_meta": False}}).json()
        if fits:
            assert 0 < answers["answers"]["q"]["noul"] < 1
        else:
            assert "the limit is 512" in str(answers)


PROSE = "The cafeteria opens at eight in the morning, and the city centre was open on Monday. "


def placed(position: float | None, length: int = 18_000) -> str:
    """`length` characters of prose with the attack at that share of them, or without."""
    filler = (PROSE * (length // len(PROSE) + 1))[:length]
    if position is None:
        return filler
    cut = round(position * length)
    while 0 < cut < length and filler[cut - 1] != " ":
        cut -= 1
    return f"{filler[:cut]} {ATTACK} {filler[cut:]}"


@pytest.fixture(scope="module")
def detector(task_models: TaskModels) -> Iterator[LiveWorker]:
    models = {kind: AttackDetector(task_models.folder(f"sequence-{kind}")) for kind in ("bert", "roberta", "xlm-roberta")}
    with live_worker(models) as running:
        yield running


KINDS = ("bert", "roberta", "xlm-roberta")


def risk(worker: LiveWorker, kind: str, text: str, **options: Any) -> dict[str, Any]:
    body = worker.post("/v1/classify", {"model": kind, "input": text, "options": options}).json()
    result: dict[str, Any] = body["results"][0]
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_d03_an_attack_is_found_wherever_it_stands(detector: LiveWorker, kind: str) -> None:
    alone = risk(detector, kind, f"so: {ATTACK}")
    assert alone["label"] == "attack"
    for position in (0.0, 0.5, 1.0):
        found = risk(detector, kind, placed(position), overflow="window")
        assert found["label"] == "attack"
        assert abs(found["probabilities"][1] - alone["probabilities"][1]) < 1e-6
        assert found["probabilities"][1] == max(window["probabilities"][1] for window in found["windows"])
        assert not found["input"]["truncated"]
        # Whatever is not read is said to be unread, never scored.
        assert risk(detector, kind, placed(position), overflow="reject")["error"] == "max_length_exceeded"
        cut = risk(detector, kind, placed(position), overflow="truncate")
        assert cut["input"]["truncated"]
        assert (cut["label"] == "attack") is (position == 0.0)
        assert risk(detector, kind, placed(position), overflow="window", max_tokens=1000)["error"] == "scan_budget_exceeded"
    assert risk(detector, kind, placed(None), overflow="window")["label"] == "benign"
    assert detector.metric(f'vllm_srun_truncated_inputs_total{{model="{kind}"}}') == 3


DENSE = {
    "hex": "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6 " * 40,
    "emoji": "🙂" * 1300 + " ",
    "chinese": "的一是不了人我在有他这中大来上国" * 69 + " ",
    "one word": "x" * 8000 + " ",
    "links": "https://example.test/a/b?c=d&e=f%20g#h " * 60,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("filler", DENSE)
def test_d05_windows_are_cut_by_tokens(task_models: TaskModels, kind: str, filler: str) -> None:
    model = AttackDetector(task_models.folder(f"sequence-{kind}"))
    text = DENSE[filler] + ATTACK
    with live_worker({kind: model}) as worker:
        found = risk(worker, kind, text, overflow="window")
    whole = tokenizer_at(task_models.folder(f"sequence-{kind}")).encode(text, add_special_tokens=False)
    laid = [(window["start"], window["end"]) for window in found["windows"]]
    assert {token for start, end in laid for token in range(start, end)} == set(range(len(whole)))
    assert set(model.seen) == {tuple(whole[start:end]) for start, end in laid}
    assert all(end - start <= LIMIT - 2 for start, end in laid)
    assert found["label"] == "attack"
    assert abs(found["probabilities"][1] - 0.98) < 1e-6
