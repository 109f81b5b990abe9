"""Labelled texts from templates. What is measured on has other templates, and other words in their gaps, than what is trained on."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, Literal

Part = Literal["train", "held_out"]
TASKS: Final = ("domain", "jailbreak", "fact_check", "user_feedback", "complexity", "modality", "preference")
_VARIANTS: Final = 8  # texts from one template, where its gaps allow as many


@dataclass(frozen=True, slots=True)
class Example:
    """`template` counts within the task: texts of one template belong together."""

    text: str
    label: str
    template: int


def labels_of(task: str) -> tuple[str, ...]:
    return tuple(_read(task)["labels"])


def subject_of(task: str) -> str:
    """What the task decides, in words."""
    return str(_read(task)["about"])


def examples(task: str, part: Part) -> list[Example]:
    """The same ones at each call."""
    read = _read(task)
    words = {slot: choices[part] for slot, choices in read["slots"].items()}
    chance = random.Random(f"{task} {part}")
    found: list[Example] = []
    number = 0
    for label, templates in read["labels"].items():
        for template in templates[part]:
            found += [Example(text, label, number) for text in _filled(template, words, chance)]
            number += 1
    return found


def _filled(template: str, words: Mapping[str, Sequence[str]], chance: random.Random) -> list[str]:
    gaps = sorted({name for _, name, _, _ in string.Formatter().parse(template) if name})
    texts = {template.format(**{gap: chance.choice(words[gap]) for gap in gaps}) for _ in range(4 * _VARIANTS)}
    return chance.sample(sorted(texts), min(_VARIANTS, len(texts)))


def _read(task: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("headway.training").joinpath("texts", f"{task}.json").read_text("utf-8"))
    return found
