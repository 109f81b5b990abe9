"""The card of the model that an EngineConfig names, with everything that its flags change about it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headway.artifacts.card import ModelCard
from headway.artifacts.config_only_card import config_only_card
from headway.artifacts.config_overrides import override_config, with_config
from headway.artifacts.inspect import inspect
from headway.artifacts.small_files import other_config
from headway.artifacts.window_cap import without_window
from headway.engine.config import EngineConfig
from headway.engine.default_sampling import generation_config
from headway.errors import ArtifactError, ConfigError

_log = logging.getLogger(__name__)


def configured_card(config: EngineConfig, progress: Callable[[float], None] = lambda part: None) -> ModelCard:
    """`progress` hears how much of a download is done. Raises ArtifactError, ConfigError."""
    card = _card(config, progress)
    _tell_of_revisions(config)
    if config.load_format in ("safetensors", "gguf") and card.format != config.load_format:
        raise ConfigError(
            f"--load-format {config.load_format} was given, but {card.path} is {card.format}", reason="load_format_conflict",
            param="load_format", fix="Leave the flag out: the files say what they are.",
        )  # fmt: skip
    if config.hf_config_path is not None:
        card = with_config(card, other_config(config.hf_config_path, cache_dir=config.download_dir, accept_licence=config.accept_licence))
        _log.info("The configuration of %s is used instead of the model's own", config.hf_config_path)
    if config.hf_overrides:
        card, changes = override_config(card, config.hf_overrides)
        for change in changes:
            _log.info("--hf-overrides %s", change)
    if config.disable_sliding_window:
        card = _without_window(card)
    return replace(card, generation_config=generation_config(config, card))


def _card(config: EngineConfig, progress: Callable[[float], None]) -> ModelCard:
    try:
        return inspect(
            config.model, revision=config.revision, cache_dir=config.download_dir, accept_licence=config.accept_licence,
            progress=lambda label, done, total: progress(done / total if total else 0.0),
        )  # fmt: skip
    except ArtifactError as error:
        if config.load_format == "dummy" and error.reason == "no_weights" and Path(config.model).expanduser().is_dir():
            return config_only_card(Path(config.model).expanduser(), config.model)
        raise


def _tell_of_revisions(config: EngineConfig) -> None:
    places = {"revision": config.model, "tokenizer_revision": config.tokenizer or config.model}
    for name, place in places.items():
        if (revision := getattr(config, name)) is not None and Path(place).expanduser().exists():
            _log.warning("--%s %s has no effect: %s is on this machine", name.replace("_", "-"), revision[:100], place)


def _without_window(card: ModelCard) -> ModelCard:
    cut = without_window(card)
    if cut.context_length == card.context_length:
        _log.info("--disable-sliding-window changes nothing: no window of the model is shorter than its context")
    else:
        _log.info("--disable-sliding-window cuts the context to the window, %s tokens", cut.context_length)
    return cut
