"""Sampling defaults that come with a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.artifacts.card import ModelCard
from headway.engine.config import EngineConfig
from headway.errors import ConfigError

_USED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def default_sampling(config: EngineConfig, card: ModelCard) -> dict[str, Any]:
    """What unset request parameters mean: from generation_config.json (`--generation-config auto`), another folder, or
    nothing (`vllm`); `--override-generation-config` wins. `max_new_tokens` becomes the cap `max_tokens`.
    """
    found: Mapping[str, Any] = {}
    if config.generation_config == "auto":
        found = card.generation_config
    elif config.generation_config != "vllm":
        found = _read(Path(config.generation_config))
    found = {**found, **config.override_generation_config}
    out = {name: found[name] for name in _USED if found.get(name) is not None}
    if found.get("max_new_tokens") is not None:
        out["max_tokens"] = found["max_new_tokens"]
    return out


def _read(folder: Path) -> Mapping[str, Any]:
    path = folder / "generation_config.json"
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"--generation-config: {path} cannot be read ({error})", param="generation_config") from error
    if not isinstance(data, dict):
        raise ConfigError(f"--generation-config: {path} must hold a JSON object", param="generation_config")
    return data
