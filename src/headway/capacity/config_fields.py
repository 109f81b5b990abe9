"""Reading a configuration in Hugging Face spelling, whose fields have several names and may be missing or null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.artifacts.context_length import text_config
from headway.errors import CapacityError

_MOST = 1 << 40


@dataclass(frozen=True, slots=True)
class ConfigFields:
    """`fields` of the language model: the section `text_config` of composite models, else the whole configuration."""

    fields: Mapping[str, Any]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ConfigFields:
        return cls(text_config(config))

    @property
    def model_type(self) -> str:
        return str(self.fields.get("model_type") or "")

    def number(self, *names: str) -> int | None:
        """The first of `names` that holds a positive whole number, or None."""
        for name in names:
            value = self.fields.get(name)
            if type(value) is int and 0 < value < _MOST:
                return value
        return None

    def need(self, *names: str) -> int:
        """The same; raises CapacityError (`unknown_geometry`) when none does."""
        value = self.number(*names)
        if value is None:
            raise CapacityError(
                f"the size of the model cannot be told: {names[0]} must be a positive number in its configuration,"
                f" found {self.fields.get(names[0])!r:.60}",
                reason="unknown_geometry",
                param="model",
                fix="Name a model with a complete config.json.",
            )
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.fields.get(name)
        return value if isinstance(value, bool) else default

    def texts(self, name: str) -> list[str]:
        """A list of words, empty when it is none."""
        value = self.fields.get(name)
        return [str(each) for each in value] if isinstance(value, list | tuple) else []
