"""The kinds of signals that models answer, in the order of the reference."""

from __future__ import annotations

from headway.router.signals.asking.chosen_kinds import DOMAIN, MODALITY, PREFERENCE, USER_FEEDBACK
from headway.router.signals.asking.classifier import CLASSIFIER
from headway.router.signals.asking.complexity import COMPLEXITY
from headway.router.signals.asking.embedding import EMBEDDING
from headway.router.signals.asking.fact_check import FACT_CHECK
from headway.router.signals.asking.jailbreak import JAILBREAK
from headway.router.signals.asking.kb import KB
from headway.router.signals.asking.pii import PII
from headway.router.signals.asking.reask import REASK
from headway.router.signals.asking.safety import SAFETY
from headway.router.signals.asking.systemone import SYSTEMONE
from headway.router.signals.kind import SignalKind

MODEL_KINDS: tuple[SignalKind, ...] = (
    EMBEDDING, DOMAIN, FACT_CHECK, USER_FEEDBACK, REASK, PREFERENCE, COMPLEXITY, MODALITY, JAILBREAK, SAFETY, PII, KB, CLASSIFIER, SYSTEMONE,
)  # fmt: skip
