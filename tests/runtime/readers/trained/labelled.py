"""Labelled texts as questions: the packaged set to train on, texts that no setting was chosen by to report on.

The settings of the training (scaling, steps, rates, decay, orders of the options) were chosen by hand with the packaged texts at even
places as training texts and those at odd places as validation texts. Results on the latter are therefore too good to report.
The texts of unseen_topics.json were written after that: a head is trained once on the whole packaged set with those settings, and scored on
them once. Whoever changes a setting chooses it by a split of the packaged set; whoever has chosen by unseen_topics.json writes new texts.
One head, option markers, was scored twice, since its first training failed (test_encoder_heads.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from math import comb
from pathlib import Path
from random import Random
from typing import Any, Final

UNSEEN: Final = Path(__file__).parent / "unseen_topics.json"


@dataclass(frozen=True, slots=True)
class Example:
    """`question` as a client writes it, its options in an order of its own; `answer` is one of their keys."""

    text: str
    question: dict[str, Any]
    answer: str

    @property
    def label(self) -> int:
        return list(self.question["criteria"]).index(self.answer)


def packaged_set() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("headway.runtime.quality").joinpath("labelled_set.json").read_text("utf-8"))
    return found


def unseen_texts() -> list[dict[str, str]]:
    """`text`, its `topic`, and the topic that a yes-or-no question asks `about`."""
    found: list[dict[str, str]] = json.loads(UNSEEN.read_text("utf-8"))["texts"]
    return found


def topic_examples(orders: int = 1, shuffled: bool = True, described: bool = True) -> tuple[list[Example], list[Example]]:
    """To train on, to report on. Training texts come in `orders` orders of the options."""
    packaged = packaged_set()
    topic = packaged["topic"]
    train = _examples(packaged["texts"], topic, Random(7), orders, shuffled, described)
    return train, _examples(unseen_texts(), topic, Random(8), 1, shuffled, described)


def _examples(texts: list[dict[str, str]], topic: dict[str, Any], chance: Random, orders: int, shuffled: bool, described: bool) -> list[Example]:
    found = []
    for each in texts:
        for _ in range(orders):
            keys = list(topic["options"])
            if shuffled:
                chance.shuffle(keys)
            criteria = {key: topic["options"][key] if described else None for key in keys}
            question = {"type": "choice", "instructions": topic["instructions"], "criteria": criteria}
            found.append(Example(each["text"], question, each["topic"]))
    return found


def chance_of(hits: int, tries: int, rate: float) -> float:
    """P(at least so many hits) for one who is right with probability `rate` each time: the binomial tail."""
    return sum(comb(tries, k) * rate**k * (1 - rate) ** (tries - k) for k in range(hits, tries + 1))


def majority_rate(examples: list[Example]) -> float:
    """How often the most frequent answer is right."""
    answers = [each.answer for each in examples]
    return max(answers.count(answer) for answer in set(answers)) / len(answers)
