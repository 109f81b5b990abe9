"""Options of the family in a models file, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import ConfigError
from headway.runtime.model_facts import RerankExit
from headway.runtime.tasks.span_decoding import WORD_STRATEGIES, WordStrategy


def served_layers(options: Mapping[str, Any]) -> Sequence[int] | None:
    """`layers`: the exits that an embedder serves. Raises ConfigError."""
    value = options.get("layers")
    if value is None or (isinstance(value, list) and all(_is_count(layer) for layer in value)):
        return value
    raise _wrong("layers", "a list of layer numbers", value)


def word_strategy(options: Mapping[str, Any]) -> WordStrategy:
    """How labels of a word's tokens become one; "token": not at all. Raises ConfigError."""
    value = options.get("word_strategy", "token")
    if value not in WORD_STRATEGIES:
        raise _wrong("word_strategy", f"one of {', '.join(WORD_STRATEGIES)}", value)
    strategy: WordStrategy = value
    return strategy


def max_scan_tokens(options: Mapping[str, Any], default: int, least: int) -> int:
    """The scan budget of requests that set none, never less than one input. Raises ConfigError."""
    value = options.get("max_scan_tokens", default)
    if not _is_count(value):
        raise _wrong("max_scan_tokens", "a number of tokens", value)
    return max(int(value), least)


def pair_scorer(options: Mapping[str, Any]) -> RerankExit | None:
    """The scorer of requests that name none. Raises ConfigError."""
    value = options.get("pair_scorer")
    return None if value is None else _exit("pair_scorer", value)


def pair_scorers(options: Mapping[str, Any]) -> tuple[RerankExit, ...] | None:
    """The scorers that are served. Raises ConfigError."""
    value = options.get("pair_scorers")
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise _wrong("pair_scorers", "a list of objects with layer and dimension", value)
    return tuple(_exit("pair_scorers", each) for each in value)


def _exit(name: str, value: Any) -> RerankExit:
    if isinstance(value, Mapping) and set(value) == {"layer", "dimension"} and all(_is_count(number) for number in value.values()):
        return RerankExit(value["layer"], value["dimension"])
    raise _wrong(name, "an object with layer and dimension", value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _wrong(name: str, expected: str, found: Any) -> ConfigError:
    return ConfigError(f"options.{name} must be {expected}, found {found!r:.80}", reason="invalid_option", param=f"options.{name}")
