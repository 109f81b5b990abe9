"""System one signals of a configuration document."""

from __future__ import annotations

from headway.router.config.document.node import Node
from headway.router.config.document.rule_tree import NumericPredicate


class SystemOneOption(Node):
    key: str | None = None
    description: str | None = None


class SystemOneQuestion(Node):
    type: str | None = None
    instructions: str | None = None
    choices: list[SystemOneOption] | None = None
    levels: list[str] | None = None
    labels: list[SystemOneOption] | None = None
    threshold: float | None = None
    head: str | None = None


class SystemOneRule(Node):
    name: str | None = None
    description: str | None = None
    deployment: str | None = None
    question: SystemOneQuestion | None = None
    predicate: NumericPredicate | None = None
    timeout_ms: int | None = None
