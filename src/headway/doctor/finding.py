"""What a rule answers: a cause with its evidence and remedies, or what is missing to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from headway.doctor.words import Words

ANSWER_ABOVE: Final = 0.5
"""A confidence above this is an answer; at or below it a suspicion or a remark."""

STATED: Final = 0.95
"""Confidence of a cause that the log states in so many words, or whose arithmetic closes."""

Weight = Literal["fatal", "degraded", "remark"]
"""fatal: the thing does not start, or does not answer. degraded: it works, badly. remark: worth knowing."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A piece of evidence. `source` is a log's file name or `context:<path>`; `line` is 1-based, None for a context.

    `text` is a part of that line with colours removed and secrets masked.
    """

    source: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy. `command` is a complete command line or setting, or None. Never a thing that must not be done."""

    text: Words
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A rule's verdict on one case.

    `cause`: one to three sentences with this case's numbers. `verify`: a command with the result to expect.
    `confidence` in [0, 1]. `title` replaces the rule's when a variant has a better name. `at` orders causes in time
    (line number; by default the earliest quoted line). `explains`: ids of rules whose findings are consequences of this
    one, beside those that the rule itself lists.
    """

    cause: Words
    evidence: Sequence[Quote]
    fixes: Sequence[Fix]
    verify: Words
    confidence: float
    weight: Weight = "fatal"
    title: Words | None = None
    at: int | None = None
    explains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Abstention:
    """A rule that saw something but cannot decide: `missing` names the fact and the probe that would settle it."""

    missing: Words
    evidence: Sequence[Quote] = field(default=())
