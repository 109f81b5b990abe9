"""Signals of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from headway.router.config.document.model_signals import (
    ClassifierSignalRule,
    ComplexityRule,
    DomainRule,
    EmbeddingRule,
    FactCheckRule,
    JailbreakRule,
    KBSignalRule,
    ModalityRule,
    PIIRule,
    PreferenceRule,
    ReaskRule,
    SafetyRule,
    UserFeedbackRule,
)
from headway.router.config.document.node import Node
from headway.router.config.document.system_one_signals import SystemOneRule
from headway.router.config.document.text_signals import (
    ContextRule,
    ConversationRule,
    EventRule,
    InputModalityRule,
    KeywordRule,
    LanguageRule,
    MetadataRule,
    RoleBinding,
    StructureRule,
)


class Signals(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "actions": "the action signal is not built; ask a systemone choice instead",
        "hallucination": "answers are checked by the plugin hallucination of a decision",
        "topic_continuity": "the topic_continuity signal is not built; reask compares with earlier turns",
    }
    other_names: ClassVar[Mapping[str, str]] = {"decision": "systemone"}

    keywords: list[KeywordRule] | None = None
    embeddings: list[EmbeddingRule] | None = None
    domains: list[DomainRule] | None = None
    fact_check: list[FactCheckRule] | None = None
    user_feedbacks: list[UserFeedbackRule] | None = None
    reasks: list[ReaskRule] | None = None
    preferences: list[PreferenceRule] | None = None
    language: list[LanguageRule] | None = None
    context: list[ContextRule] | None = None
    structure: list[StructureRule] | None = None
    complexity: list[ComplexityRule] | None = None
    modality: list[ModalityRule] | None = None
    role_bindings: list[RoleBinding] | None = None
    jailbreak: list[JailbreakRule] | None = None
    safety: list[SafetyRule] | None = None
    pii: list[PIIRule] | None = None
    kb: list[KBSignalRule] | None = None
    conversation: list[ConversationRule] | None = None
    events: list[EventRule] | None = None
    metadata: list[MetadataRule] | None = None
    classifiers: list[ClassifierSignalRule] | None = None
    input_modality: list[InputModalityRule] | None = None
    systemone: list[SystemOneRule] | None = None
