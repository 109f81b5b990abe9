"""The packaged labelled set: short English texts on six topics and reviews, written for this purpose, with one question each
of type choice and several of type noul."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from headway.wire.decisions import Option, Question

NAME: Final = "headway-decisions-1"
_SIDES: Final = (Option("false"), Option("true"))


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """`truth` is the index of the right option; `domain` says what kind of text it is about."""

    domain: str
    state: str
    question: Question
    truth: int


@cache
def labelled_questions() -> Sequence[LabelledQuestion]:
    """In a fixed order."""
    return labelled_in(json.loads(files("headway.runtime.quality").joinpath("labelled_set.json").read_text("utf-8")))


def labelled_in(given: dict[str, Any]) -> Sequence[LabelledQuestion]:
    """`given` in the form of the packaged file."""
    return (*_topics(given), *_about(given), *_satisfied(given))


def _topics(given: dict[str, Any]) -> list[LabelledQuestion]:
    options = tuple(Option(name, description) for name, description in given["topic"]["options"].items())
    names = [option.key for option in options]
    question = Question("choice", given["topic"]["instructions"], options)
    return [LabelledQuestion("topics", each["text"], question, names.index(each["topic"])) for each in given["texts"]]


def _about(given: dict[str, Any]) -> list[LabelledQuestion]:
    text = given["about"]["instructions"]
    return [
        LabelledQuestion("about", each["text"], Question("noul", text.format(topic=each["about"]), _SIDES), int(each["about"] == each["topic"]))
        for each in given["texts"]
    ]


def _satisfied(given: dict[str, Any]) -> list[LabelledQuestion]:
    question = Question("noul", given["satisfied"]["instructions"], _SIDES)
    return [LabelledQuestion("reviews", each["text"], question, int(each["satisfied"])) for each in given["reviews"]]
