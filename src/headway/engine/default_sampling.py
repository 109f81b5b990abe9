"""Sampling defaults that come with a model."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.card import ModelCard
from headway.engine.config import EngineConfig
from headway.engine.sampling_params import SamplingParams
from headway.errors import ArtifactError, ConfigError, RequestError

_USED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
_MEANING = (*_USED, "max_new_tokens")
_FILE = "generation_config.json"
_log = logging.getLogger(__name__)


def generation_config(config: EngineConfig, card: ModelCard) -> Mapping[str, Any]:
    """generation_config.json of the model (`--generation-config auto`), of another folder, or of the model without its
    sampling defaults (`vllm`); `--override-generation-config` wins. Raises ConfigError (`generation_config_unreadable`)."""
    if config.generation_config == "auto":
        found = card.generation_config
    elif config.generation_config == "vllm":
        found = {name: value for name, value in card.generation_config.items() if name.endswith("_token_id")}
    else:
        found = _read(Path(config.generation_config).expanduser())
    _tell_what_means_nothing(config.override_generation_config)
    return {**found, **config.override_generation_config}


def _tell_what_means_nothing(overrides: Mapping[str, Any]) -> None:
    for name in overrides:
        if name not in _MEANING and not name.endswith("_token_id"):
            near = difflib.get_close_matches(name, _MEANING, 1)
            guess = f"did you mean {near[0]}?" if near else f"known are {', '.join(_MEANING)}"
            _log.warning("--override-generation-config %s has no effect; %s", name[:100], guess)


def default_sampling(config: EngineConfig, card: ModelCard) -> dict[str, Any]:
    """What unset request parameters mean; `max_new_tokens` becomes the cap `max_tokens`. `card` has the generation config
    that was chosen. Raises ConfigError (`generation_config_invalid`) for values that no request could have."""
    found = card.generation_config
    out = {name: found[name] for name in _USED if found.get(name) is not None}
    if found.get("max_new_tokens") is not None:
        out["max_tokens"] = found["max_new_tokens"]
    try:
        SamplingParams(**out)
    except (RequestError, TypeError, ValueError) as error:
        source = "of the model" if config.generation_config in ("auto", "vllm") else f"at {config.generation_config}"
        raise ConfigError(
            f"the sampling defaults in {_FILE} {source} cannot be used: {error}", reason="generation_config_invalid",
            param="generation_config", fix="Correct the file, replace the value with --override-generation-config, or use --generation-config vllm.",
        ) from error  # fmt: skip
    return out


def _read(place: Path) -> Mapping[str, Any]:
    path = place / _FILE if place.is_dir() else place
    try:
        return read_json_object(path)
    except ArtifactError as error:
        raise ConfigError(
            f"--generation-config {place}: {error.message}", reason="generation_config_unreadable", param="generation_config",
            fix=f"Give a folder with {_FILE}, the file itself, auto or vllm.",
        ) from error  # fmt: skip
