"""Flag: one row of the tables from which the parser, the help, the documentation and the warnings are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.errors import ConfigError, NotBuiltError
from headway.flags.span import Span
from headway.flags.values import READERS, Kind


@dataclass(frozen=True, slots=True)
class Flag:
    """`name` has no leading dashes. What a flag does is decided by the first of these that is set:

    `refused`: never, and why. `note`: accepted without effect, and why. `feature`: not built yet, what it would need;
    `comes`: where that is planned; `harmless`: values that ask for what happens anyway. None of them: built.

    `aliases` are other spellings of equal rank ("-tp" or a long name); `words` are texts that stand for a value of
    another kind; `span` is which numbers are allowed. Old spellings are in `flags_old`.
    """

    name: str
    kind: Kind
    default: Any
    help: str
    group: str = ""
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    words: Mapping[str, Any] = field(default_factory=dict)
    span: Span | None = None
    feature: str | None = None
    comes: str = ""
    harmless: tuple[Any, ...] = ()
    note: str | None = None
    refused: str | None = None

    @property
    def dest(self) -> str:
        """The name as a Python identifier: the field of EngineConfig or ServerSettings, the keyword of LLM."""
        return self.name.replace("-", "_")

    @property
    def is_built(self) -> bool:
        return self.feature is None and self.note is None and self.refused is None

    @property
    def status(self) -> str:
        """built, accepted, not built or refused."""
        if self.refused:
            return "refused"
        if self.note:
            return "accepted"
        return "not built" if self.feature else "built"

    def read(self, text: str) -> Any:
        """The value of `text`. Raises ConfigError naming the flag, what was expected and what was found."""
        if text in self.words:
            return self.words[text]
        try:
            value = READERS[self.kind](text)
        except ValueError as expected:
            raise ConfigError(f"--{self.name} needs {expected}, got {text[:100]!r}", param=self.name) from None
        if self.choices and value not in self.choices:
            raise ConfigError(
                f"--{self.name} must be one of {', '.join(self.choices)}, got {text[:100]!r}", param=self.name
            )
        if self.span is not None and value not in self.span:
            raise ConfigError(f"--{self.name} must be {self.span}, got {text[:100]!r}", param=self.name)
        return value

    def check_value(self, value: Any) -> None:
        """Raises NotBuiltError if `value` asks for what does not exist yet, ConfigError if it asks for what never will."""
        if value == self.default or value in self.harmless:
            return
        if self.refused is not None:
            raise ConfigError(f"--{self.name} is refused: {self.refused}", reason="flag_refused", param=self.name)
        if self.feature is not None:
            message = f"--{self.name} is not built yet: this version has no {self.feature}"
            planned = f" (planned: {self.comes})" if self.comes else ""
            raise NotBuiltError(message + planned, param=self.name, fix=self._way_out())

    def _way_out(self) -> str:
        works = [str(value) for value in (self.default, *self.harmless) if isinstance(value, str | int) and value]
        return f"Leave it out, or use {' or '.join(works)}." if works else "Leave it out."
