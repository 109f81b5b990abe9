"""`--lora-modules`: adapters that are loaded at the start, as name=path or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.engine.config import EngineConfig
from headway.errors import ConfigError

_FLAG = "lora_modules"
_FIELDS = {"name", "path", "base_model_name"}


@dataclass(frozen=True, slots=True)
class AdapterModule:
    name: str
    path: str
    base_model_name: str | None = None


def adapter_modules(words: Sequence[str], config: EngineConfig) -> list[AdapterModule]:
    """Raises ConfigError for words that name no adapter, for a base model that is not served, for names that are there twice or are
    those of the model, and without --enable-lora."""
    modules = [_read(word) for word in words]
    if modules and not config.enable_lora:
        raise ConfigError("--lora-modules needs --enable-lora", param=_FLAG, fix="Add --enable-lora.")
    names = [config.model, *config.served_model_name]
    taken = set(config.served_model_name or (config.model,))
    for module in modules:
        if module.name in taken:
            raise ConfigError(f"--lora-modules: the name {module.name[:100]!r} is taken", param=_FLAG, fix="Give every adapter a name of its own.")
        taken.add(module.name)
        if module.base_model_name is not None and module.base_model_name not in names:
            raise ConfigError(
                f"--lora-modules: adapter {module.name[:100]!r} is for {module.base_model_name[:100]!r}, this server has {', '.join(names)}",
                param=_FLAG, fix="Serve that model, or correct base_model_name.",
            )  # fmt: skip
    return modules


def _read(word: str) -> AdapterModule:
    if word.lstrip().startswith("{"):
        return _from_json(word)
    name, equals, path = word.partition("=")
    if not (name and equals and path):
        raise ConfigError(f"--lora-modules needs name=path or a JSON object, got {word[:100]!r}", param=_FLAG)
    return AdapterModule(name, path)


def _from_json(word: str) -> AdapterModule:
    try:
        found: Any = json.loads(word)
    except (ValueError, RecursionError):
        raise ConfigError(f"--lora-modules: this is not JSON: {word[:100]!r}", param=_FLAG) from None
    if unknown := sorted(set(found) - _FIELDS):
        raise ConfigError(f"--lora-modules knows {', '.join(sorted(_FIELDS))}, got {unknown[0][:60]!r}", param=_FLAG)
    for field in _FIELDS:
        value = found.get(field)
        if value is None and field == "base_model_name":
            continue
        if not isinstance(value, str) or not value:
            raise ConfigError(f"--lora-modules needs a text as {field}, got {value!r:.60}", param=_FLAG)
    return AdapterModule(**found)
