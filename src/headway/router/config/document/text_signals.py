"""Text signals of a configuration document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from headway.router.config.document.node import Node
from headway.router.config.document.rule_tree import NumericPredicate


class KeywordRule(Node):
    name: str | None = None
    operator: str | None = None
    keywords: list[str] | None = None
    case_sensitive: bool | None = None
    method: str | None = None
    fuzzy_match: bool | None = None
    fuzzy_threshold: int | None = None
    bm25_threshold: float | None = None
    ngram_threshold: float | None = None
    ngram_arity: int | None = None
    include_history: bool | None = None


class LanguageRule(Node):
    name: str | None = None
    description: str | None = None
    threshold: float | None = None


class ContextRule(Node):
    name: str | None = None
    min_tokens: str | None = None
    max_tokens: str | None = None
    description: str | None = None


class StructureSource(Node):
    type: str | None = None
    pattern: str | None = None
    keywords: list[str] | None = None
    case_sensitive: bool | None = None
    sequences: list[list[str]] | None = None


class StructureFeature(Node):
    type: str | None = None
    source: StructureSource | None = None


class StructureRule(Node):
    name: str | None = None
    description: str | None = None
    feature: StructureFeature | None = None
    predicate: NumericPredicate | None = None


class ConversationSource(Node):
    type: str | None = None
    role: str | None = None


class ConversationFeature(Node):
    type: str | None = None
    source: ConversationSource | None = None


class ConversationRule(Node):
    name: str | None = None
    description: str | None = None
    feature: ConversationFeature | None = None
    predicate: NumericPredicate | None = None


class EventRule(Node):
    name: str | None = None
    description: str | None = None
    event_types: list[str] | None = None
    severities: list[str] | None = None
    action_codes: list[str] | None = None
    temporal: bool | None = None


class MetadataPredicate(Node):
    equals: str | None = None
    in_: list[str] | None = Field(default=None, alias="in")
    exists: bool | None = None


class MetadataRule(Node):
    name: str | None = None
    description: str | None = None
    key: str | None = None
    predicate: MetadataPredicate | None = None


class InputModalityRule(Node):
    name: str | None = None
    description: str | None = None
    modality: Literal["text", "image", "audio", "video"] | None = None


class Subject(Node):
    kind: str | None = None
    name: str | None = None


class RoleBinding(Node):
    name: str | None = None
    description: str | None = None
    subjects: list[Subject] | None = None
    role: str | None = None
