"""One sentence in the languages that the doctor speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Language = Literal["en", "zh"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Words:
    """The same statement in English and Chinese; numbers and commands are equal in both."""

    en: str
    zh: str

    def speak(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en
