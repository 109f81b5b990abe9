"""Raw scores of labelled examples: what a reader says before any temperature."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import orjson

from headway.decisions.planner import DecisionsPlanner
from headway.decisions.question import QuestionType, Subject
from headway.decisions.reader import FloatArray, QuestionPlan
from headway.decisions.suitability import suited
from headway.runtime.calibration.labelled import Labelled, LabelledState
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.row import ItemFailure

_FORWARD_TOKENS: Final = 16_384  # examples that are computed together


@dataclass(frozen=True, slots=True)
class ScoredExample:
    """`scores` [n] before any temperature and the index of the right one; `options` names the bucket. A label of a set is an
    example of two: no (score 0) and yes. `share` in [0, 1) is that of the state: equal states are on the same side of a split."""

    kind: QuestionType
    options: int
    scores: FloatArray
    truth: int
    share: float


@dataclass(slots=True)
class ScoredData:
    """`skipped` counts questions that have no scores, by the reason."""

    examples: list[ScoredExample] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def score_examples(model: LoadedModel, planner: DecisionsPlanner, states: Sequence[LabelledState], progress: Callable[[int], object]) -> ScoredData:
    """Ask everything once; `progress` is called with the number of states that are done. On the device thread."""
    data = ScoredData()
    for batch in _batches(_planned(planner, states, data)):
        rows = [row for _, _, plan in batch for row in plan.rows]
        outcomes = iter(model.forward(rows))
        for state, example, plan in batch:
            values = [next(outcomes) for _ in plan.rows]
            failed = next((value for value in values if isinstance(value, ItemFailure)), None)
            if failed is not None:
                data.skipped[failed.code] += 1
                continue
            scores = np.asarray(plan.read(values).scores, dtype=np.float64)
            if scores.shape != (len(example.question.options),) or not np.isfinite(scores).all():
                data.skipped["invalid_model_output"] += 1
                continue
            data.examples += _examples(example, scores, _share(state))
        progress(len({state.line for state, _, _ in batch}))
    return data


def _planned(planner: DecisionsPlanner, states: Sequence[LabelledState], data: ScoredData) -> Iterator[tuple[LabelledState, Labelled, QuestionPlan]]:
    reader = planner.reader
    for state in states:
        whole = Subject(state.state)
        for example in state.examples:
            if len(example.question.options) > reader.comfortable_options:
                data.skipped[f"more than {reader.comfortable_options} options, asked in several rounds"] += 1
                continue
            fitted = suited(example.question, whole, reader, planner.facts)
            if isinstance(fitted, ItemFailure):
                data.skipped[fitted.code] += 1
                continue
            question, subject = fitted
            [plan] = reader.plan(subject, [question])
            if isinstance(plan, ItemFailure):
                data.skipped[plan.code] += 1
                continue
            yield state, example, plan


def _batches(
    planned: Iterator[tuple[LabelledState, Labelled, QuestionPlan]],
) -> Iterator[list[tuple[LabelledState, Labelled, QuestionPlan]]]:
    batch: list[tuple[LabelledState, Labelled, QuestionPlan]] = []
    tokens = 0
    for each in planned:
        cost = sum(row.cost for row in each[2].rows)
        if batch and tokens + cost > _FORWARD_TOKENS:
            yield batch
            batch, tokens = [], 0
        batch.append(each)
        tokens += cost
    if batch:
        yield batch


def _examples(example: Labelled, scores: FloatArray, share: float) -> Iterator[ScoredExample]:
    kind = example.question.type
    if kind == "set":
        for index, score in enumerate(scores):
            yield ScoredExample(kind, 2, np.array([0.0, score]), int(index in example.truth), share)
    else:
        yield ScoredExample(kind, len(scores), scores, example.truth[0], share)


def _share(state: LabelledState) -> float:
    text = orjson.dumps(state.state, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(hashlib.sha256(text).digest()[:6]) / (1 << 48)
