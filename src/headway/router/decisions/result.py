"""What the decision engine says about one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.router.truth import Truth


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One node of a rule tree, evaluated. `kind` is leaf, AND, OR or NOT; `score` None means that it ranks nothing."""

    kind: str
    truth: Truth
    score: float | None = None
    signal_type: str = ""
    signal_name: str = ""
    label: str = ""
    reason: str | None = None
    children: tuple[TraceNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One decision, evaluated. `policy` is the `on_unknown` policy that resolved an unknown root, if one did."""

    name: str
    matched: bool
    confidence: float | None
    root: TraceNode
    catch_all: bool = False
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """`chosen` is the winning decision's name, None for the default model. `failed` names the decision whose policy is `fail_request`."""

    chosen: str | None
    confidence: float | None
    evaluated: tuple[Evaluated, ...] = ()
    matched_rules: tuple[str, ...] = ()
    failed: str | None = None
    policies: Mapping[str, str] = field(default_factory=dict)
