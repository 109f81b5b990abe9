"""Rule tree of a configuration document."""

from __future__ import annotations

from typing import Literal

from headway.router.config.document.node import Node


class NumericPredicate(Node):
    gt: float | None = None
    gte: float | None = None
    lt: float | None = None
    lte: float | None = None


class RuleNode(Node):
    type: (
        Literal[
            "action",
            "authz",
            "classifier",
            "complexity",
            "context",
            "conversation",
            "decision",
            "domain",
            "embedding",
            "event",
            "fact_check",
            "input_modality",
            "jailbreak",
            "kb",
            "keyword",
            "language",
            "metadata",
            "modality",
            "pii",
            "preference",
            "reask",
            "safety",
            "structure",
            "user_feedback",
            "projection",
        ]
        | None
    ) = None
    name: str | None = None
    label: str | None = None
    predicate: NumericPredicate | None = None
    on_error: str | None = None
    on_unknown: Literal["no_match", "match", "fail_request"] | None = None
    operator: str | None = None
    conditions: list[RuleNode] | None = None
