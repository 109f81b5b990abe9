"""The models file of `vllm-srun serve --models`: YAML (or JSON) -> ModelEntry records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from headway.errors import ConfigError
from headway.runtime.loading.model_entry import NAME_RULE, ModelEntry, is_name
from headway.wire.removed import PROFILE_REMOVED

MAX_BYTES: Final = 1 << 20
MAX_MODELS: Final = 256


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# key -> (what it must be, in words; the test)
_KEYS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "model": ("a non-empty text", _text),
    "revision": ("a non-empty text", _text),
    "name": (NAME_RULE, is_name),
    "family": ("a non-empty text", _text),
    "device": ("a non-empty text", _text),
    "engine": ("a non-empty text", _text),
    "memory_budget_gib": ("a number above 0", lambda v: _number(v) and v > 0),
    "options": ("a mapping", lambda v: isinstance(v, dict) and all(isinstance(key, str) for key in v)),
    "enable_shared_context": ("true or false", lambda v: isinstance(v, bool)),
    "batch_window_ms": ("a number from 0 to 10000", lambda v: _number(v) and 0 <= v <= 10_000),
    "max_num_seqs": ("a whole number of at least 1", lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 1),
}
_NULL_MEANS_DEFAULT: Final = frozenset(_KEYS) - {"model"}


def read_models_file(path: str) -> tuple[ModelEntry, ...]:
    """Raises ConfigError (`models_file_invalid`) naming the index of the wrong entry."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _wrong(f"--models {path!r} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise _wrong(f"--models {path!r} has more than {MAX_BYTES} bytes")
    try:
        content = yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _wrong(f"--models {path!r} is neither YAML nor JSON: {error}") from None
    return models_of(content, f"--models {path!r}")


def models_of(content: Any, source: str) -> tuple[ModelEntry, ...]:
    """The entries of a parsed models file. Raises ConfigError (`models_file_invalid`)."""
    if not isinstance(content, dict):
        raise _wrong(f"{source} must hold a mapping with the key models, found {type(content).__name__}")
    if "profile" in content:
        raise _wrong(f"{source}: {PROFILE_REMOVED}")
    if unknown := [str(key) for key in content if key != "models"]:
        raise _wrong(f"{source} has unknown keys: {', '.join(unknown)[:200]}; expected only models")
    listed = content.get("models")
    if not isinstance(listed, list) or not listed:
        raise _wrong(f"{source}: models must be a non-empty list")
    if len(listed) > MAX_MODELS:
        raise _wrong(f"{source}: models has {len(listed)} entries, the limit is {MAX_MODELS}")
    entries = tuple(_entry(each, f"{source}: models[{index}]") for index, each in enumerate(listed))
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry.name is not None and first.setdefault(entry.name, index) != index:
            raise _wrong(f"{source}: models[{index}] and models[{first[entry.name]}] have the same name {entry.name!r}")
    return entries


def _entry(fields: Any, where: str) -> ModelEntry:
    if not isinstance(fields, dict):
        raise _wrong(f"{where} must be a mapping, found {type(fields).__name__}")
    if "profile" in fields or "profiles" in fields:
        raise _wrong(f"{where}: {PROFILE_REMOVED}")
    if unknown := [str(key) for key in fields if key not in _KEYS]:
        raise _wrong(f"{where} has unknown keys: {', '.join(unknown)[:200]}; known are {', '.join(_KEYS)}")
    if "model" not in fields:
        raise _wrong(f"{where} has no model")
    given = {key: value for key, value in fields.items() if value is not None or key not in _NULL_MEANS_DEFAULT}
    for key, value in given.items():
        expected, is_right = _KEYS[key]
        if not is_right(value):
            raise _wrong(f"{where}.{key} must be {expected}, found {value!r:.60}")
    if "profile" in given.get("options", {}):
        raise _wrong(f"{where}.options: {PROFILE_REMOVED}")
    return ModelEntry(**given)


def _wrong(message: str) -> ConfigError:
    return ConfigError(message, reason="models_file_invalid", param="models")
