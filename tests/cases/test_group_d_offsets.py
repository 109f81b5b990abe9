"""D06, D08: offsets are code points of the text as it was sent, whatever the tokenizer makes of it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest

from tests.runtime.live_worker import live_worker
from tests.runtime.tasks.planted_models import Tagger
from tests.runtime.tasks.task_models import TaskModels

KINDS = ("bert", "roberta", "xlm-roberta")
NFC = "Write to José Núñez today"
NFD = unicodedata.normalize("NFD", NFC)
Entities = Sequence[tuple[str, int, int]]
PLACES: dict[str, Entities] = {
    "🙂🙂 Please call Dana Wells at 555-0142.": [("PERSON", 15, 25), ("PHONE", 29, 37)],
    "您好，请联系王小明，电话 555-0142。": [("PERSON", 6, 9), ("PHONE", 13, 21)],
    "Dana Wells rang.": [("PERSON", 0, 10)],
    "👩‍👩‍👧 family: dana@example.test": [("MAIL", 14, 31)],
    NFC: [("PERSON", 9, 19)],
    NFD: [("PERSON", 9, 22)],
    "line one\r\nDana Wells\r\n555-0142\r\n": [("PERSON", 10, 20), ("PHONE", 22, 30)],
    "התקשרו אל דנה ולס 555-0142": [("PERSON", 10, 17), ("PHONE", 18, 26)],
}  # fmt: skip


@pytest.fixture(scope="module")
def task_models(tmp_path_factory: pytest.TempPathFactory) -> TaskModels:
    return TaskModels(tmp_path_factory.mktemp("tasks"))


@pytest.mark.parametrize("kind", KINDS)
def test_d06_offsets_over_http(task_models: TaskModels, kind: str) -> None:
    assert len(NFD) == 28
    with live_worker({kind: Tagger(task_models.folder(f"token-{kind}"), dict(PLACES))}) as worker:
        body = worker.post("/v1/classify", {"input": list(PLACES)}).json()
    assert body["offset_unit"] == "code_point"
    for (text, entities), result in zip(PLACES.items(), body["results"], strict=True):
        spans = result["spans"]
        assert [(span["label"], span["start"], span["end"]) for span in spans] == [tuple(entity) for entity in entities]
        masked = text
        for span in reversed(spans):
            assert text[span["start"] : span["end"]] == span["text"]
            masked = masked[: span["start"]] + "█" * (span["end"] - span["start"]) + masked[span["end"] :]
        assert len(masked) == len(text)
        hidden = {i for span in spans for i in range(span["start"], span["end"])}
        assert all(masked[i] == text[i] for i in range(len(text)) if i not in hidden)


CHARACTERS: dict[str, tuple[int, int]] = {
    "i ⭢ j": (2, 3), "🙂": (0, 1), "x🙂y": (1, 2), "🇩🇪 flag": (0, 2), "hi 👍🏽 there": (3, 5), "🙂🙃🙂": (1, 2),
}  # fmt: skip


@pytest.mark.parametrize("text", CHARACTERS)
def test_d08_tokens_of_one_character(task_models: TaskModels, text: str) -> None:
    start, end = CHARACTERS[text]
    folder = task_models.folder("token-roberta")  # byte-level
    for only in (None, 0, 1, 2):
        tagger = Tagger(folder, {text: [("PERSON", start, end)]}, only=only)
        with live_worker({"tagger": tagger}) as worker:
            result = worker.post("/v1/classify", {"input": text, "options": {"return_tokens": True}}).json()["results"][0]
        places = [(token["start"], token["end"]) for token in result["tokens"]]
        assert max(stop for _, stop in places) <= len(text)
        assert len([place for place in places if place[0] < end and place[1] > start]) >= 3  # several tokens, as the case says
        (span,) = result["spans"]
        if only is None:
            assert (span["start"], span["end"]) == (start, end)
        else:  # a part of the entity, never a part of a character
            assert start <= span["start"] < span["end"] <= end
        assert span["text"] == text[span["start"] : span["end"]]


def test_d08_an_empty_text_has_no_spans(task_models: TaskModels) -> None:
    for kind in KINDS:
        with live_worker({kind: Tagger(task_models.folder(f"token-{kind}"), {})}) as worker:
            answer = worker.post("/v1/classify", {"input": ""})
        assert answer.status_code == 200
        assert answer.json()["results"][0]["spans"] == []
