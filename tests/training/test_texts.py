from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from headway.training.texts import TASKS, examples, labels_of


def tables(task: str) -> Any:
    return json.loads(files("headway.training").joinpath("texts", f"{task}.json").read_text("utf-8"))


@pytest.mark.parametrize("task", TASKS)
def test_what_is_held_out_was_not_trained_on(task: str) -> None:
    read = tables(task)
    for label, templates in read["labels"].items():
        assert len(templates["train"]) >= 6, label
        assert len(templates["held_out"]) >= 3, label
    seen = {template for label in read["labels"].values() for template in label["train"]}
    assert not seen & {template for label in read["labels"].values() for template in label["held_out"]}
    for slot, words in read["slots"].items():
        assert not set(words["train"]) & set(words["held_out"]), slot
    assert not {example.text for example in examples(task, "train")} & {example.text for example in examples(task, "held_out")}


@pytest.mark.parametrize("task", TASKS)
def test_texts_are_the_same_each_time_and_have_no_gaps(task: str) -> None:
    first = examples(task, "train")
    assert first == examples(task, "train")
    assert {example.label for example in first} == set(labels_of(task))
    assert not [example.text for example in first if "{" in example.text]
