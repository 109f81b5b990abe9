"""StructuredConfig: what --structured-outputs-config says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.errors import ConfigError, NotBuiltError

_FLAG: Final = "structured_outputs_config"
_OTHER_BACKENDS: Final = ("guidance", "outlines", "lm-format-enforcer")
_SWITCHES: Final = ("disable_any_whitespace", "enable_in_reasoning")


@dataclass(frozen=True, slots=True)
class StructuredConfig:
    """`disable_any_whitespace`: JSON without blanks for all requests. `enable_in_reasoning`: the form holds from the first token, not from the
    end of the reasoning."""

    disable_any_whitespace: bool = False
    enable_in_reasoning: bool = False


def structured_config(given: Mapping[str, Any]) -> StructuredConfig:
    """Raises ConfigError for unknown names and values, NotBuiltError for what only other grammar libraries do."""
    backend = given.get("backend", "auto")
    if backend in _OTHER_BACKENDS:
        raise NotBuiltError(f"structured output through {backend} is not built", param=_FLAG, fix="Use the backend xgrammar, or auto.")
    if backend not in ("auto", "xgrammar"):
        raise ConfigError(f"{_FLAG}: backend must be auto or xgrammar, got {backend!r:.60}", param=_FLAG)
    if given.get("disable_additional_properties"):
        raise NotBuiltError(
            "disable_additional_properties belongs to the backend guidance", param=_FLAG, fix="Write additionalProperties: false in the schemas."
        )
    for name in ("reasoning_parser", "reasoning_parser_plugin"):
        if given.get(name):
            raise ConfigError(f"{_FLAG}: {name} has a flag of its own", param=_FLAG, fix=f"Use --{name.replace('_', '-')}.")
    known = {"backend", "disable_additional_properties", "reasoning_parser", "reasoning_parser_plugin", *_SWITCHES}
    if unknown := sorted(str(name) for name in given if name not in known):
        raise ConfigError(f"{_FLAG}: there is no option {unknown[0]!r:.60}; known are {', '.join(sorted(known))}", param=_FLAG)
    for name in _SWITCHES:
        if not isinstance(given.get(name, False), bool):
            raise ConfigError(f"{_FLAG}: {name} must be true or false, got {given[name]!r:.60}", param=_FLAG)
    return StructuredConfig(**{name: given[name] for name in _SWITCHES if name in given})
