"""From keyword arguments, as `LLM` takes them, to an EngineConfig. Names that vLLM knows are never ignored silently."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from headway.engine.config import EngineConfig
from headway.engine.flags import ENGINE_FLAGS
from headway.errors import ConfigError, NotBuiltError
from headway.flags.flag import Flag
from headway.flags.values import Kind

_FIELDS = {f.name for f in dataclasses.fields(EngineConfig)} - {"model"}


def engine_config(model: str | os.PathLike[str], arguments: Mapping[str, Any]) -> EngineConfig:
    """Raises ConfigError for unknown names (with the nearest known one), NotBuiltError for features that do not exist yet."""
    model = os.fspath(model) if isinstance(model, os.PathLike) else model
    if not isinstance(model, str):
        raise ConfigError(f"model must be a text or a path, got {type(model).__name__}", param="model")
    known: dict[str, Any] = {}
    flags = {f.dest: f for f in ENGINE_FLAGS}
    for name, value in arguments.items():
        if value is None and name in flags:
            continue  # the default
        if name in _FIELDS:
            known[name] = _value(flags[name], value)
        elif name in flags:
            flags[name].check_value(value)
        else:
            near = difflib.get_close_matches(name, [*_FIELDS, *flags], 1)
            raise ConfigError(f"unknown argument {name!r}", param=name, fix=f"Did you mean {near[0]!r}?" if near else None)
    return EngineConfig(model=model, **known)


def _value(flag: Flag, value: Any) -> Any:
    """Texts mean what they mean on the command line, so `max_model_len="4k"` and "auto" are fine."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, str) and flag.kind != "text":
        try:
            return flag.read(value)
        except ConfigError as error:
            raise ConfigError(f"{flag.dest}: {error.message}", param=flag.dest) from None
    expected, fits = _KINDS[flag.kind]
    if not fits(value):
        raise ConfigError(f"{flag.dest} must be {expected}, got {value!r:.100}", param=flag.dest)
    return tuple(value) if isinstance(value, list) else value


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str | type) for item in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Kind of flag -> what is expected instead of a text, and whether a value is that. Logits processors may be classes.
_KINDS: Final[Mapping[Kind, tuple[str, Callable[[Any], bool]]]] = {
    "text": ("a text", lambda value: isinstance(value, str)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("an integer", lambda value: _is_number(value) and isinstance(value, int)),
    "size": ("an integer", lambda value: _is_number(value) and isinstance(value, int)),
    "float": ("a number", _is_number),
    "json": ("a JSON object", lambda value: isinstance(value, Mapping)),
    **dict.fromkeys(("texts", "words", "csv"), ("a text or a list of texts", _are_texts)),
}


__all__ = ["NotBuiltError", "engine_config"]
