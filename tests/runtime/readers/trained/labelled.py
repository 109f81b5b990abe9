"""The packaged labelled texts as questions, half to train on, half held out; and how many hits chance does not explain."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from math import comb
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True)
class Example:
    """`question` as a client writes it, its options in an order of its own; `answer` is one of their keys."""

    text: str
    question: dict[str, Any]
    answer: str

    @property
    def label(self) -> int:
        return list(self.question["criteria"]).index(self.answer)


def topic_examples(orders: int = 1, shuffled: bool = True, described: bool = True) -> tuple[list[Example], list[Example]]:
    """Train, held out. Training texts come in `orders` orders of the options."""
    found = json.loads(files("headway.runtime.quality").joinpath("labelled_set.json").read_text("utf-8"))
    topic, chance = found["topic"], Random(7)
    train: list[Example] = []
    held_out: list[Example] = []
    for number, each in enumerate(found["texts"]):
        for _ in range(orders if number % 2 == 0 else 1):
            keys = list(topic["options"])
            if shuffled:
                chance.shuffle(keys)
            criteria = {key: topic["options"][key] if described else None for key in keys}
            question = {"type": "choice", "instructions": topic["instructions"], "criteria": criteria}
            (train if number % 2 == 0 else held_out).append(Example(each["text"], question, each["topic"]))
    return train, held_out


def chance_of(hits: int, tries: int, rate: float) -> float:
    """P(at least so many hits) for one who is right with probability `rate` each time: the binomial tail."""
    return sum(comb(tries, k) * rate**k * (1 - rate) ** (tries - k) for k in range(hits, tries + 1))


def majority_rate(examples: list[Example]) -> float:
    """How often the most frequent answer is right."""
    answers = [each.answer for each in examples]
    return max(answers.count(answer) for answer in set(answers)) / len(answers)
