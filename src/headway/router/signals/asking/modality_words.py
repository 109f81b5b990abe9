"""Modality by words that ask for a picture, with a model behind them or without."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from headway.router.config.document.modules import ModalityDetector
from headway.router.deployments.calls import StageCalls
from headway.router.observation import Observation
from headway.router.request.view import RequestView
from headway.router.signals.asking.exclusive import ExclusiveSignal
from headway.router.truth import Truth

_PICTURE: Final = ("draw", "generate an image", "generate a picture", "create an image", "create a picture", "make an image", "paint", "illustrate", "sketch", "render an image")
_BOTH: Final = ("with an image", "with a picture", "with an illustration", "and draw", "and illustrate", "illustrated explanation")


class ModalitySignal:
    """`names` of the rules; words of `module`, or those of this file where it has none. A text in which no word is found goes to `asked`, or is
    taken for one that wants text. Words begin and end at the edge of a word, whatever their case."""

    def __init__(self, names: Sequence[str], module: ModalityDetector, asked: ExclusiveSignal | None) -> None:
        self._names = names
        self._both = _pattern(module.both_keywords or _BOTH)
        self._picture = _pattern(module.keywords or _PICTURE)
        self._asked = asked

    def deployments(self) -> frozenset[str]:
        return self._asked.deployments() if self._asked else frozenset()

    async def observe(self, view: RequestView, calls: StageCalls) -> Sequence[Observation]:
        for label, pattern in (("BOTH", self._both), ("DIFFUSION", self._picture)):
            found = pattern.search(view.user_text)
            if found:
                return self._judged(label, found.group())
        return await self._asked.observe(view, calls) if self._asked else self._judged("AR", None)

    def _judged(self, label: str, word: str | None) -> list[Observation]:
        evidence = {"label": label} if word is None else {"label": label, "keyword": word}
        return [
            Observation("modality", name, Truth.of(name == label), matched_labels=(label,) if name == label else (), evidence=evidence) for name in self._names
        ]


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in sorted(words, key=len, reverse=True)), re.IGNORECASE)
