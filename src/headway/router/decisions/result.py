"""What the decision engine says about one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from headway.router.truth import Truth

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class TraceNode(NamedTuple):
    """One node of a rule tree, evaluated. `kind` is leaf, AND, OR or NOT.

    `confidence` is that of a node which holds: of a leaf its signal's (1 when it has none), of AND the mean, of OR the best branch's, of NOT 1; None
    where the node does not hold. `score` is the evidence in it: what signals of one `scale` measured, without the gates, which only say yes or no;
    None means that the node ranks nothing. `sources` counts the leaves that `confidence` was made from. `assumed` says that a policy stood in for an
    answer that is missing, `reason` why it is missing. `evidence` is the observation's.
    """

    kind: str
    truth: Truth
    confidence: float | None = None
    score: float | None = None
    scale: str | None = None
    sources: int = 0
    assumed: bool = False
    signal_type: str = ""
    signal_name: str = ""
    label: str = ""
    reason: str | None = None
    evidence: Mapping[str, Any] = _NOTHING
    children: tuple[TraceNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One decision, evaluated. `policy` is the `on_unknown` policy that resolved an unknown root, if one did.

    `score` and `scale` are what it competes with by confidence, None when it does not.
    """

    name: str
    matched: bool
    confidence: float | None
    root: TraceNode
    catch_all: bool = False
    policy: str | None = None
    score: float | None = None
    scale: str | None = None
    priority: int = 0
    tier: int = 0


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """`chosen` is the winning decision's name, None for the default model. `failed` names the decision whose policy is `fail_request`.

    `confidence` is the winner's where one leaf alone gave it, None where it is a mean over several: such a number compares with nothing.
    `order` names all decisions that match, the winner first; `ranked_by` says what put them in order (`confidence` or `priority`).
    """

    chosen: str | None
    confidence: float | None
    evaluated: tuple[Evaluated, ...] = ()
    matched_rules: tuple[str, ...] = ()
    failed: str | None = None
    policies: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    ranked_by: str = "priority"
