"""Where downloads are kept, and whether the network may be used. Read from the environment at each call."""

from __future__ import annotations

import os
from pathlib import Path

_TRUE = frozenset({"1", "true", "yes", "on"})


def headway_cache(override: str | Path | None = None) -> Path:
    """`override`, else `$HEADWAY_CACHE`, else `$XDG_CACHE_HOME/headway`, else `~/.cache/headway`."""
    if override is not None:
        return Path(override).expanduser()
    if named := os.environ.get("HEADWAY_CACHE"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "headway"


def hub_cache(override: str | Path | None = None) -> Path:
    """The cache of huggingface_hub: `override`, `$HF_HUB_CACHE`, `$HUGGINGFACE_HUB_CACHE`, `$HF_HOME/hub`, else its default."""
    if override is not None:
        return Path(override).expanduser()
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if named := os.environ.get(name):
            return Path(os.path.expandvars(named)).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(os.path.expandvars(home)).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface" / "hub"


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in _TRUE


def offline_variable(*, hub: bool) -> str | None:
    """The name of the variable that forbids the network, or None. The HF variables forbid the hub only."""
    names = ("HEADWAY_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if hub else ("HEADWAY_OFFLINE",)
    return next((name for name in names if _is_set(name)), None)
