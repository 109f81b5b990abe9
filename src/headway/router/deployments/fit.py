"""Whether a model can do what the configuration uses it for: its card against what consumers require."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.router.deployments.card import Card
from headway.router.deployments.specification import Specification

MISMATCH = "a binding does not match the model"


@dataclass(frozen=True, slots=True)
class Requirement:
    """What `consumer` needs of the model of `deployment`. `labels` in the model's order when `ordered`, else just there. `exit` is a (layer,
    dimension) of a reranker, 0 = its full depth or width; `operating_point` the SHA-256 of the thresholds that the head must come with."""

    deployment: str
    consumer: str
    surface: str
    kinds: tuple[str, ...] = ()
    head: str | None = None
    labels: tuple[str, ...] = ()
    ordered: bool = False
    exit: tuple[int, int] | None = None
    operating_point: str | None = None


def misfit(card: Card, specification: Specification, requirements: Sequence[Requirement]) -> str | None:
    """Why the model does not fit, in one sentence; None when it does."""
    for requirement in requirements:
        for check in (_surface, _head, _exit):
            if (problem := check(card, requirement)) is not None:
                return f"{MISMATCH}: {requirement.consumer} needs {problem}"
    if (problem := _budget(card, specification)) is not None:
        return f"{MISMATCH}: {problem}"
    return None


def _surface(card: Card, wanted: Requirement) -> str | None:
    if wanted.surface in card.surfaces:
        return None
    return f"the surface {wanted.surface}, the model serves {', '.join(sorted(card.surfaces)) or 'none'}"


def _head(card: Card, wanted: Requirement) -> str | None:
    if wanted.surface != "classify":
        return None
    head = next(iter(card.heads.values()), None) if wanted.head is None else card.heads.get(wanted.head)
    if head is None:
        return f"the head {wanted.head or 'of a classifier'}, the model has {', '.join(card.heads) or 'none'}"
    if wanted.kinds and head.kind not in wanted.kinds:
        return f"a head of kind {' or '.join(wanted.kinds)}, {head.name} is of kind {head.kind}"
    if wanted.ordered and wanted.labels != head.labels:
        return f"the labels {_listed(wanted.labels)} in this order, {head.name} has {_listed(head.labels)}"
    if wanted.operating_point is not None and wanted.operating_point != head.operating_point:
        return f"the operating point {wanted.operating_point[:12]}, {head.name} has {(head.operating_point or 'none')[:12]}"
    missing = [label for label in wanted.labels if label not in head.labels]
    if missing:
        return f"the labels {_listed(missing)}, {head.name} has {_listed(head.labels)}"
    return None


def _exit(card: Card, wanted: Requirement) -> str | None:
    if wanted.exit is None or any(_same(wanted.exit, one) for one in card.exits):
        return None
    return f"the exit layer {wanted.exit[0]}, dimension {wanted.exit[1]}; the model has {', '.join(f'{a}/{b}' for a, b in card.exits) or 'none'}"


def _same(wanted: tuple[int, int], found: tuple[int, int]) -> bool:
    return all(want in (0, has) for want, has in zip(wanted, found, strict=True))


def _budget(card: Card, specification: Specification) -> str | None:
    """The input budget of the deployment against the model's limits."""
    most = specification.max_tokens
    decides_only = card.surfaces <= {"decisions"}
    if decides_only and specification.overflow == "truncate":
        return "input.overflow truncate is not for questions, which are never cut silently"
    if most is None:
        return None
    if decides_only and "max_scan_tokens" not in card.limits:
        return "input.max_tokens is a scan budget for questions, and the model reads its input in one piece"
    limit = card.limits.get("max_scan_tokens" if specification.overflow == "window" else "max_input_tokens")
    if limit is None or most <= limit:
        return None
    return f"input.max_tokens is {most}, the model reads at most {limit} tokens"


def _listed(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values[:8]))
    return f"{shown}, ..." if len(values) > 8 else shown or "none"


CONTRACTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "label_distribution.v1": ("classify", ("sequence",)),
    "label_scores.v1": ("classify", ("scores",)),
    "score.v1": ("classify", ("sequence", "scores")),
    "token_spans.v1": ("classify", ("token",)),
    "embedding.v1": ("embeddings", ()),
    "relevance_scores.v1": ("rerank", ()),
    "decision.v1": ("decisions", ()),
    "decision_task.v1": ("decisions", ()),
}
"""Contract of a binding -> surface and kinds of head."""
