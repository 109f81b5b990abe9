"""D09: B- and I- tags made into spans, over HTTP, alone and in a batch. The rules are in docs/families.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from headway.artifacts.tokenizer import tokenizer_at
from headway.runtime.tasks.span_decoding import WordStrategy
from tests.runtime.live_worker import live_worker
from tests.runtime.tasks.planted_models import TAGS, Tagger
from tests.runtime.tasks.task_models import TaskModels

NUMBER, WORD, FOUR, TWO = "5.975,74", "recursionlinks", "Dana Wells Paris Tower", "Dana Wells"
TAGGED: dict[str, Sequence[str]] = {
    NUMBER: ["B-PHONE"],  # of every piece
    WORD: ["B-PERSON", "O"],
    FOUR: ["B-PERSON", "I-PERSON", "B-PERSON", "I-PERSON"],
    TWO: ["I-PHONE", "I-PHONE"],
    "Dana Paris": ["B-PERSON", "I-PHONE"],
}


class TagRows(Tagger):
    """The given tags for the tokens of a text, the last one for all that are left; each has `sure` against O."""

    def __init__(self, *arguments: Any, words: WordStrategy, sure: float = 0.9):
        super().__init__(*arguments, dict.fromkeys(TAGGED, ()), words)
        for text, tags in TAGGED.items():
            ids = tuple(self.tokenizer.encode(text))
            content = range(1, len(ids) - 1)
            logits = np.full((len(ids), len(TAGS)), -9.0, dtype=np.float32)
            logits[:, 0] = np.log(1 - sure)
            for number, token in enumerate(content):
                logits[token, TAGS.index(tags[min(number, len(tags) - 1)])] = np.log(sure)
            self._rows[ids] = logits


@pytest.fixture(scope="module")
def task_models(tmp_path_factory: pytest.TempPathFactory) -> TaskModels:
    return TaskModels(tmp_path_factory.mktemp("tasks"))


def spans(task_models: TaskModels, words: WordStrategy, sure: float = 0.9) -> dict[str, list[tuple[str, int, int]]]:
    folder = task_models.folder("token-bert")
    with live_worker({"tags": TagRows(folder, words=words, sure=sure)}) as worker:
        together = worker.post("/v1/classify", {"input": list(TAGGED)}).json()["results"]
        alone = [worker.post("/v1/classify", {"input": text}).json()["results"][0] for text in TAGGED]
    assert [result["spans"] for result in together] == [result["spans"] for result in alone]
    for text, result in zip(TAGGED, together, strict=True):
        assert all(span["text"] == text[span["start"] : span["end"]].strip() for span in result["spans"])
    return {
        text: [(span["label"], span["start"], span["end"]) for span in result["spans"]]
        for text, result in zip(TAGGED, together, strict=True)
    }  # fmt: skip


def test_d09_token_by_token(task_models: TaskModels) -> None:
    found = spans(task_models, "token")
    offsets = tokenizer_at(task_models.folder("token-bert")).backend.encode(NUMBER, add_special_tokens=False).offsets
    assert len(offsets) > 3
    assert found[NUMBER] == [("PHONE", *place) for place in offsets]  # each B- opens
    assert found[WORD][0][:2] == ("PERSON", 0)
    assert found[WORD][0][2] < len(WORD)  # the rule alone cuts the word
    assert found[FOUR] == [("PERSON", 0, 10), ("PERSON", 11, 22)]
    assert found[TWO] == [("PHONE", 0, 10)]
    assert found["Dana Paris"] == [("PERSON", 0, 4), ("PHONE", 5, 10)]


@pytest.mark.parametrize("words", ["first", "max", "average"])
def test_d09_word_by_word(task_models: TaskModels, words: WordStrategy) -> None:
    found = spans(task_models, words)
    assert found[NUMBER] == [("PHONE", 0, 8)]
    assert found[FOUR] == [("PERSON", 0, 10), ("PERSON", 11, 22)]
    assert found[TWO] == [("PHONE", 0, 10)]
    assert found["Dana Paris"] == [("PERSON", 0, 4), ("PHONE", 5, 10)]
    if words == "first":
        assert found[WORD] == [("PERSON", 0, len(WORD))]


def test_d09_a_hair_decides(task_models: TaskModels) -> None:
    """0.51 against 0.49 is a span, 0.49 against 0.51 is none: the best label counts, there is no hidden threshold."""
    assert spans(task_models, "token", 0.51)[TWO] == [("PHONE", 0, 10)]
    assert spans(task_models, "token", 0.49)[TWO] == []
