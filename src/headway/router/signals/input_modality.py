"""The input_modality signal: which kinds of content the user sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway.router.config.document.text_signals import InputModalityRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.truth import Truth

TYPE = "input_modality"
_MODALITY_OF_PART: Mapping[str, str] = {
    "text": "text",
    "input_text": "text",
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "video_url": "video",
    "input_video": "video",
}


class InputModalities:
    """All rules. Only what users send counts, in every turn of theirs."""

    def __init__(self, rules: Sequence[InputModalityRule]) -> None:
        self._rules = rules

    def observe(self, view: RequestView) -> Sequence[Observation]:
        parts = modality_parts(view)
        return [
            Observation(TYPE, rule.name, Truth.of(parts.get(rule.modality, 0) > 0), value=float(parts.get(rule.modality, 0))) for rule in self._rules
        ]


def modality_parts(view: RequestView) -> Mapping[str, int]:
    """How many parts of each modality the user turns have; empty texts are none."""
    counts: dict[str, int] = {}
    for message in view.messages:
        content = message.get("content") if message.get("role") == "user" else None
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
        for part in parts:
            modality = _MODALITY_OF_PART.get(str(part.get("type"))) if isinstance(part, Mapping) else None
            if modality and (modality != "text" or part.get("text")):
                counts[modality] = counts.get(modality, 0) + 1
    return counts


def _compile(rules: Sequence[InputModalityRule], recipe: Recipe) -> Sequence[InputModalities]:
    return (InputModalities(rules),)


INPUT_MODALITY = SignalKind(TYPE, "input_modality", "input_modality", _compile)
