"""A model's results on the work, and how they differ from the baseline's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.evaluation.baseline import Baseline
from headway.evaluation.measuring import OnTokens, comparisons_of, logprobs_of
from headway.evaluation.output_head import load_head
from headway.evaluation.remote import RemoteModel
from headway.evaluation.scoring import Progress
from headway.evaluation.subject import Subject, load
from headway.evaluation.task_results import TaskResult
from headway.evaluation.text_results import Divergence, TextResult, divergence
from headway.evaluation.token_scores import Head
from headway.evaluation.work import Work, same_tokens


@dataclass(frozen=True, slots=True)
class Measurement:
    """In the order of the work."""

    texts: tuple[TextResult, ...]
    tasks: tuple[TaskResult, ...]
    divergence: Divergence | None = None


def measure(subject: Subject, work: Work, base: Baseline | None, progress: Progress, done: OnTokens) -> Measurement:
    """`base` with hidden states, where distributions are to be compared. Of the baseline only the head is in memory beside the model.
    Raises what loading raises, NotNumbersError."""
    base_head = None
    if base is not None and base.texts and same_tokens(work, base.work):
        base_head = Head(load_head(base.subject, progress), base.subject.known)
    model = load(subject, progress)
    head = Head(model.head, subject.known)
    texts, differences, agreements = [], [], []
    for i, each in enumerate(work.texts):
        if base is None or base_head is None:
            texts.append(each.result(list(logprobs_of(model, head, each.requests, done))))
            continue
        found = list(comparisons_of(model, head, each.requests, base.texts[i], base_head, done))
        texts.append(each.result([part.logprobs for part in found]))
        differences += [part.divergence for part in found]
        agreements += [part.agrees for part in found]
    tasks = tuple(each.result(list(logprobs_of(model, head, each.requests, done))) for each in work.tasks)
    compared = divergence(np.concatenate(differences), np.concatenate(agreements)) if differences else None
    return Measurement(tuple(texts), tasks, compared)


def measure_remote(remote: RemoteModel, work: Work, done: OnTokens) -> Measurement:
    """Raises HeadwayError, NotNumbersError."""
    return Measurement(
        tuple(each.result(list(remote.logprobs_of(each.requests, done))) for each in work.texts),
        tuple(each.result(list(remote.logprobs_of(each.requests, done))) for each in work.tasks),
    )


def measured_baseline(base: Baseline) -> Measurement:
    return Measurement(
        tuple(each.result(record.logprobs_of_each()) for each, record in zip(base.work.texts, base.texts, strict=True)),
        tuple(each.result(record.logprobs_of_each()) for each, record in zip(base.work.tasks, base.tasks, strict=True)),
    )
