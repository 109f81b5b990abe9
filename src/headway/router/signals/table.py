"""The kinds of signals, in the order of the reference."""

from __future__ import annotations

from collections.abc import Mapping

from headway.router.signals.asking.table import MODEL_KINDS
from headway.router.signals.authz import AUTHZ
from headway.router.signals.context import CONTEXT
from headway.router.signals.conversation import CONVERSATION
from headway.router.signals.event import EVENT
from headway.router.signals.input_modality import INPUT_MODALITY
from headway.router.signals.keyword.kind import KEYWORD
from headway.router.signals.kind import SignalKind
from headway.router.signals.language.kind import LANGUAGE
from headway.router.signals.metadata import METADATA
from headway.router.signals.structure import STRUCTURE

SIGNAL_KINDS: tuple[SignalKind, ...] = (
    KEYWORD,
    LANGUAGE,
    CONTEXT,
    STRUCTURE,
    CONVERSATION,
    INPUT_MODALITY,
    AUTHZ,
    EVENT,
    METADATA,
    *MODEL_KINDS,
)

KIND_OF_TYPE: Mapping[str, SignalKind] = {kind.type: kind for kind in SIGNAL_KINDS}
