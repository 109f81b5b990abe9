"""What --profiler-config may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import ConfigError

# Keys of --profiler-config, as in vLLM -> what a value must be, and its default.
KEYS: Final[Mapping[str, tuple[type, Any]]] = {
    "profiler": (str, "torch"),
    "torch_profiler_dir": (str, ""),
    "torch_profiler_with_stack": (bool, False),
    "torch_profiler_record_shapes": (bool, False),
    "torch_profiler_with_memory": (bool, False),
    "torch_profiler_use_gzip": (bool, True),
}


def check_profiler_config(config: Mapping[str, Any]) -> None:
    """Raises ConfigError for keys that are not there and values that cannot be used; {} asks for no profiler."""
    for name, value in config.items():
        if name not in KEYS:
            raise _wrong(f"has no {name!r}; it takes {', '.join(KEYS)}")
        if not isinstance(value, KEYS[name][0]):
            raise _wrong(f"{name} must be a {KEYS[name][0].__name__}, got {value!r:.100}")
    if config and config.get("profiler", "torch") != "torch":
        raise _wrong(f"profiler must be torch, got {config['profiler']!r:.100}")
    if config and not config.get("torch_profiler_dir"):
        raise _wrong("torch_profiler_dir names the folder for traces, and is missing")


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"--profiler-config {what}", param="profiler_config")
