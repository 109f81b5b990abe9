"""From the words after `vllm-srun serve` to models and settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headway.cli.flag_index import FlagIndex
from headway.cli.parse import Parsed, Warn, parse_words
from headway.errors import ArtifactError, ConfigError
from headway.runtime.default_models import DEFAULT_MODELS
from headway.runtime.environment import strange_variables
from headway.runtime.flags import SRUN_FLAGS
from headway.runtime.loading.model_entry import NAME_RULE, ModelEntry, is_name
from headway.runtime.loading.models_file import read_models_file
from headway.runtime.loading.package_source import split_reference
from headway.runtime.plugins import PluginSet
from headway.runtime.settings import WorkerSettings
from headway.wire.removed import PROFILE_REMOVED

_OF_ONE_MODEL: Final = ("revision", "served-model-name")
_PROFILE_WORDS: Final = ("--profile", "--profiles", "--no-profile")


@dataclass(frozen=True, slots=True)
class SrunConfig:
    """`variables` are to be set in the environment before torch is imported; `topic`: help was asked for instead."""

    entries: tuple[ModelEntry, ...]
    settings: WorkerSettings
    variables: Mapping[str, str] = field(default_factory=dict)
    topic: str | None = None


def srun_config(words: Sequence[str], environment: Mapping[str, str], warn: Warn) -> SrunConfig:
    """Flags win over the environment. Raises ConfigError."""
    if any(word.partition("=")[0] in _PROFILE_WORDS for word in words):
        raise ConfigError(PROFILE_REMOVED, reason="unknown_flag", param="profile", fix="Leave --profile out.")
    parsed = parse_words(words, FlagIndex(SRUN_FLAGS, "vllm-srun serve"), warn)
    if parsed.topic is not None:
        return SrunConfig((), WorkerSettings(), topic=parsed.topic)
    names = {each.name for each in dataclasses.fields(WorkerSettings)}
    given = {name.replace("-", "_"): value for name, value in parsed.values.items()}
    settings = WorkerSettings(**{**_from_environment(environment), **{k: v for k, v in given.items() if k in names}})
    for sentence in strange_variables(environment):
        warn(sentence)
    entries = _entries(parsed)
    _check_plugins(entries)
    return SrunConfig(entries, settings, _variables(settings, environment))


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if key := environment.get("VLLM_SRUN_API_KEY"):
        found["api_key"] = (key,)
    if folder := environment.get("VLLM_SRUN_AUTOTUNE_CACHE"):
        found["autotune_cache"] = folder
    return found


def _variables(settings: WorkerSettings, environment: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if settings.offline:
        found["HEADWAY_OFFLINE"] = "1"
    if settings.autotune_cache is not None:
        # What PyTorch and Triton compile is kept there; whoever has set the variables has decided otherwise.
        folders = {"TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor"}
        found |= {name: f"{settings.autotune_cache}/{folder}" for name, folder in folders.items() if name not in environment}
    return found


def _entries(parsed: Parsed) -> tuple[ModelEntry, ...]:
    values = parsed.values
    per_model = [name for name in ("revision", "served-model-name", "family") if name in values]
    if "models" in values:
        if parsed.words:
            raise ConfigError(f"models are given as words ({parsed.words[0][:100]}) and in --models", param="models", fix="Use one of them.")
        if per_model:
            raise ConfigError(f"--{per_model[0]} describes one model that is given as a word", param=per_model[0], fix="Write it into the models file.")
        entries = read_models_file(values["models"])
        return tuple(_with_places(entry, values) for entry in entries)
    words = tuple(parsed.words) or DEFAULT_MODELS
    wrong = [name for name in per_model if name in _OF_ONE_MODEL]
    if wrong and len(words) != 1:
        raise ConfigError(f"--{wrong[0]} can be given with one model only, found {len(words)}", param=wrong[0], fix="Use a models file.")
    return tuple(_entry(word, values) for word in words)


def _entry(word: str, values: Mapping[str, Any]) -> ModelEntry:
    name = values.get("served-model-name")
    if name is not None and not is_name(name):
        raise ConfigError(f"--served-model-name must be {NAME_RULE}, got {name[:60]!r}", param="served_model_name")
    entry = ModelEntry(
        word,
        revision=values.get("revision"),
        name=name,
        family=values.get("family"),
        device=values.get("device", "auto"),
        engine=values.get("engine", "auto"),
    )
    try:
        split_reference(entry)
    except ArtifactError as error:
        raise ConfigError(error.message, param="revision") from None
    return entry


def _with_places(entry: ModelEntry, values: Mapping[str, Any]) -> ModelEntry:
    """--device and --engine hold for entries that say nothing."""
    return dataclasses.replace(
        entry,
        device=values.get("device", "auto") if entry.device == "auto" else entry.device,
        engine=values.get("engine", "auto") if entry.engine == "auto" else entry.engine,
    )


def _check_plugins(entries: Sequence[ModelEntry]) -> None:
    """Names of plug-ins are known without importing one. Raises ConfigError with the names there are."""
    plugins = PluginSet.installed()
    for entry in entries:
        if entry.engine != "auto":
            plugins.engines.named(entry.engine, "engine")
        if entry.family is not None:
            plugins.families.named(entry.family, "family")
        if entry.device != "auto":
            plugins.accelerators.named(entry.device.partition(":")[0], "accelerator")
