"""A packed checkpoint read in other ways than it says: the one that makes sense of it names what is wrong with what it says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headway.artifacts.card import ModelCard
from headway.artifacts.quantization_claim import METHOD_NAMES
from headway.errors import HeadwayError
from headway.evaluation.measuring import logprobs_of
from headway.evaluation.scoring import Progress, ScoringRequest
from headway.evaluation.subject import Subject, load, planned
from headway.evaluation.token_scores import Head


@dataclass(frozen=True, slots=True)
class Setting:
    """`field` of the quantization section may be wrong in `methods`; `means` says what it means if it is."""

    field: str
    values: tuple[Any, ...]
    methods: tuple[str, ...]
    means: str


_SETTINGS: Final = (
    Setting("checkpoint_format", ("gptq", "gptq_v2"), ("gptq",), "zero points are off by one"),
    Setting("group_size", (-1, 16, 32, 64, 128, 256, 512, 1024), ("awq", "gptq"), "scales are given to the wrong inputs"),
    Setting("bits", (2, 3, 4, 8), ("gptq",), "weights are cut apart at the wrong bits"),
    Setting("desc_act", (False, True), ("gptq",), "inputs are in another order"),
    Setting("sym", (False,), ("gptq",), "zero points are there and not used"),
    Setting("quant_method", ("awq", "gptq"), ("awq", "gptq"), "the weights are packed in another format"),
)
_NOTABLE: Final = math.log(1.05)
"""A wrong reading makes no model better; one that lowers the perplexity by 5 % is the right one."""


@dataclass(frozen=True, slots=True)
class Probe:
    """`requests` of some hundred tokens; a model of sense takes less than `most` nats a token. `found`: what it took as the file says, None when
    it could not be read."""

    requests: Sequence[ScoringRequest]
    most: float
    found: float | None


def sensible_reading(subject: Subject, probe: Probe, progress: Progress) -> str | None:
    """A sentence on the setting with which the checkpoint makes sense, or None."""
    bound = probe.most if probe.found is None or not math.isfinite(probe.found) else min(probe.most, probe.found - _NOTABLE)
    best: tuple[float, Setting, Any] | None = None
    for setting, value, card in _readings(subject.card):
        nats = _nats(subject, card, probe, _named(progress, f"trying {setting.field} {value}"))
        if nats is not None and nats < bound and (best is None or nats < best[0]):
            best = (nats, setting, value)
    if best is None:
        return None
    nats, setting, value = best
    instead = "" if probe.found is None else f" instead of {_shown(probe.found)}"
    source = (subject.card.quantization or {}).get("source", "config.json")
    return (
        f"{setting.means} as the file describes itself: read with {setting.field} {_json(value)}, its perplexity on {sum(len(each.targets) for each in probe.requests)}"
        f" tokens is {_shown(nats)}{instead}. Set {setting.field} to {_json(value)} in the quantization section of {source}."
    )


def _readings(card: ModelCard) -> Iterator[tuple[Setting, Any, ModelCard]]:
    """Every single change of a setting."""
    claim = card.quantization
    if claim is None:
        return
    method = METHOD_NAMES.get(str(claim.get("quant_method")))
    for setting in _SETTINGS:
        for value in setting.values:
            if method in setting.methods and claim.get(setting.field) != value:
                changed = {**claim, setting.field: value}
                if setting.field == "checkpoint_format":
                    changed["quant_method"] = "gptq"  # gptq_v2 as a method says the same
                yield setting, value, replace(card, quantization=changed)


def _named(progress: Progress, what: str) -> Progress:
    return lambda stage, done: progress(f"{what}: {stage}", done)


def _nats(subject: Subject, card: ModelCard, probe: Probe, progress: Progress) -> float | None:
    """Of a token; None when the file cannot be read that way. Headers alone rule most ways out."""
    try:
        planned(subject, card)
        model = load(subject, progress, card)
        found = list(logprobs_of(model, Head(model.head, subject.known), probe.requests, lambda tokens: None))
    except HeadwayError:
        return None
    return -float(sum(each.sum() for each in found)) / sum(len(each) for each in found)


def _shown(nats: float) -> str:
    value = math.exp(min(nats, 700.0))
    return f"{value:,.1f}" if value < 1e6 else f"{value:.1e}"


def _json(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
