"""Asking one question of a reader, in one round or, above what the reader does well, in several.

More options than the reader takes at once (`group_size`): the options are cut into groups of nearly equal size, in their order, and each group
is asked by itself; then the best of every group are asked against each other, again in groups if there are too many.
Within a group the odds are those of the group; the winners of groups stand to each other as the next round says. In
logits: an option's logit is that of its group's winner in the next round, less what it was behind the winner in its
group. So the option with the highest probability is the winner of the last round, and all probabilities sum to 1.
Temperatures are applied round by round, since they belong to a number of options.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from headway.decisions.question import Question
from headway.decisions.reader import DecisionReader, FloatArray, Reading
from headway.decisions.row import ItemFailure


@dataclass(frozen=True, slots=True)
class Shortlist:
    """`rounds` that it took, `groups` of the first one."""

    rounds: int
    groups: int


@dataclass(frozen=True, slots=True)
class Scored:
    """`logits` [options] with the temperature applied, as is `abstain`; `reading` is that of the last round. `threshold` is
    that of a calibration."""

    logits: FloatArray
    reading: Reading
    abstain: float | None = None
    shortlist: Shortlist | None = None
    threshold: float | None = None


Asking: TypeAlias = Generator[list[Question], list[Reading | ItemFailure], Scored | ItemFailure]
"""Yields the questions of a round, all about the same subject, and is sent what the model says to each."""


def ask(question: Question, reader: DecisionReader, largest: int) -> Asking:
    """The rounds of one question, in which at most `largest` options are asked together."""
    if len(question.options) <= largest or question.type in ("noul", "score"):
        [answer] = yield [question]
        if isinstance(answer, ItemFailure):
            return answer
        return _scored(answer, question, reader)
    if question.type == "choice":
        return (yield from _shortlist(question, reader, largest))
    return (yield from _label_groups(question, reader, largest))


def _scored(reading: Reading, question: Question, reader: DecisionReader) -> Scored:
    temperature = reader.applied_temperature(question.type, len(reading.scores))
    abstain = None if reading.abstain is None else reading.abstain / temperature
    return Scored(np.asarray(reading.scores, dtype=np.float64) / temperature, reading, abstain, threshold=reader.applied_threshold(question.type))


def _ask_groups(
    question: Question, reader: DecisionReader, groups: list[list[int]]
) -> Generator[list[Question], list[Reading | ItemFailure], list[Scored] | ItemFailure]:
    """One round: every group by itself. The first failure is that of the question."""
    parts = [_part(question, group) for group in groups]
    answers = yield parts
    scored: list[Scored] = []
    for answer, part in zip(answers, parts, strict=True):
        if isinstance(answer, ItemFailure):
            return answer
        scored.append(_scored(answer, part, reader))
    return scored


def _shortlist(question: Question, reader: DecisionReader, largest: int) -> Asking:
    groups = cut(len(question.options), largest)
    scored = yield from _ask_groups(question, reader, groups)
    if isinstance(scored, ItemFailure):
        return scored
    best = [group[int(np.argmax(each.logits))] for each, group in zip(scored, groups, strict=True)]
    final = yield from ask(_part(question, best), reader, largest)
    if isinstance(final, ItemFailure):
        return final
    logits = np.empty(len(question.options))
    for each, group, winner in zip(scored, groups, final.logits, strict=True):
        logits[group] = winner + each.logits - each.logits.max()
    rounds = 2 if final.shortlist is None else final.shortlist.rounds + 1
    return replace(final, logits=logits, shortlist=Shortlist(rounds, len(groups)))


def _label_groups(question: Question, reader: DecisionReader, largest: int) -> Asking:
    """Labels of sets and spans are judged one by one, so groups need no second round."""
    groups = cut(len(question.options), largest)
    scored = yield from _ask_groups(question, reader, groups)
    if isinstance(scored, ItemFailure):
        return scored
    spans = sorted((span for each in scored for span in each.reading.spans), key=lambda span: (span.start, span.end))
    logits = np.concatenate([each.logits for each in scored])
    return Scored(logits, replace(scored[-1].reading, spans=tuple(spans)), shortlist=Shortlist(1, len(groups)), threshold=scored[-1].threshold)


def cut(count: int, largest: int) -> list[list[int]]:
    """Indices 0 to count - 1 in as few groups of at most `largest` as there can be, of nearly equal size, in order."""
    groups = -(-count // largest)
    return [part.tolist() for part in np.array_split(np.arange(count), groups)]


def _part(question: Question, indices: Sequence[int]) -> Question:
    return replace(question, options=tuple(question.options[i] for i in indices))
