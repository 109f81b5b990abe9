"""The language signal: in which language the latest user turn is written."""

from __future__ import annotations

from collections.abc import Sequence

from headway.router.config.document.text_signals import LanguageRule
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.keyword.folding import whole_characters
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.signals.language.detectors import LanguageDetector, language_detector
from headway.router.truth import Truth

TYPE = "language"
_DEFAULT_THRESHOLD = 0.3
_READ = 4096  # characters: a language shows early


class LanguageRules:
    """All rules; the text is read once. A rule holds when its language has a probability of at least its threshold and no other has more."""

    def __init__(self, rules: Sequence[LanguageRule], detector: LanguageDetector) -> None:
        self._rules = [(rule.name, language_code(rule.name), rule.threshold or _DEFAULT_THRESHOLD) for rule in rules]
        self._detector = detector

    def observe(self, view: RequestView) -> Sequence[Observation]:
        text = whole_characters(view.user_text[:_READ])
        found = self._detector.detect(text) if any(map(str.isalpha, text)) else {}
        best = next(iter(found), None)
        observations = []
        for name, code, threshold in self._rules:
            probability = found.get(code, 0.0)
            holds = code == best and probability >= threshold
            evidence = {"detector": self._detector.name, "language": best} if best is not None else {}
            observations.append(Observation(TYPE, name, Truth.of(holds), probability if holds else None, probability, evidence=evidence))
        return observations


def language_code(name: str) -> str:
    """`zh-CN` and `ZH` as `zh`."""
    return name.replace("_", "-").split("-")[0].lower()


def _compile(rules: Sequence[LanguageRule], recipe: Recipe) -> Sequence[LanguageRules]:
    return (LanguageRules(rules, language_detector()),)


LANGUAGE = SignalKind(TYPE, "language", "language", _compile, scale="probability")
