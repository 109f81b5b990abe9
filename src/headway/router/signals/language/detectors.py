"""Language detectors: fastText's lid-176 where it was fetched, lingua otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from headway.artifacts.cache_folders import headway_cache
from headway.artifacts.registry import registry
from headway.artifacts.registry_fetch import fetched

FASTTEXT_MODEL = "lid-176"
_BEST = 5  # languages that are told


class LanguageDetector(Protocol):
    name: str

    def detect(self, text: str) -> Mapping[str, float]:
        """ISO 639 codes with their probabilities, best first; empty when the text has no words."""
        ...


class FastTextDetector:
    """176 languages in some ten microseconds (model by Joulin et al., CC BY-SA 3.0)."""

    name = FASTTEXT_MODEL

    def __init__(self, model: Path) -> None:
        import fasttext

        self._model = fasttext.load_model(str(model))

    def detect(self, text: str) -> Mapping[str, float]:
        labels, scores = self._model.predict(" ".join(text.split()), k=_BEST)
        return {label.removeprefix("__label__"): min(float(score), 1.0) for label, score in zip(labels, scores, strict=True)}


class LinguaDetector:
    """75 languages, without a download; trigrams only, since the full models take a gigabyte."""

    name = "lingua"

    def __init__(self) -> None:
        from lingua import LanguageDetectorBuilder

        self._detector = LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()

    def detect(self, text: str) -> Mapping[str, float]:
        best = self._detector.compute_language_confidence_values(text)[:_BEST]
        return {found.language.iso_code_639_1.name.lower(): found.value for found in best if found.value > 0}


def language_detector() -> LanguageDetector:
    """The best detector that needs no download."""
    return _detector(fetched(registry()[FASTTEXT_MODEL], headway_cache()))


@lru_cache(2)
def _detector(model: Path | None) -> LanguageDetector:
    return FastTextDetector(model) if model is not None else LinguaDetector()
