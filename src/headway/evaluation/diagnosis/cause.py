"""likely_cause: the sentence that names what is wrong with a checkpoint."""

from __future__ import annotations

from headway.errors import HeadwayError
from headway.evaluation.diagnosis.differing_weights import exchanged_weights, weights_without_numbers
from headway.evaluation.diagnosis.other_settings import Probe, sensible_reading
from headway.evaluation.diagnosis.weight_samples import WeightSample, weight_samples
from headway.evaluation.scoring import Progress
from headway.evaluation.subject import Subject, planned
from headway.models.native import NativePlan


def likely_cause(subject: Subject, base: Subject | None, probe: Probe | None, progress: Progress) -> str | None:
    """Of a checkpoint that cannot be read, makes no sense or is worse than its baseline: what an experiment shows, or None. Experiments read all
    weights, or load the model again."""
    samples = _samples(subject, progress)
    if samples is not None and (found := weights_without_numbers(samples)) is not None:
        return found
    if probe is not None and (found := sensible_reading(subject, probe, progress)) is not None:
        return found
    others = None if base is None or samples is None else _samples(base, progress)
    return None if samples is None or others is None else exchanged_weights(samples, {sample.place: sample for sample in others})


def _samples(subject: Subject, progress: Progress) -> list[WeightSample] | None:
    """None for models that transformers runs, and for files that cannot be read."""
    try:
        plan = planned(subject)
        return list(weight_samples(plan, progress)) if isinstance(plan, NativePlan) else None
    except HeadwayError:
        return None
