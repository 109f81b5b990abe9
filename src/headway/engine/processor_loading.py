"""From `--logits-processors package.module:Class` to objects. The code named there runs with all rights of the process."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import torch

from headway.engine.config import EngineConfig
from headway.engine.logits_processor import LogitsProcessor
from headway.engine.sampling_params import SamplingParams
from headway.errors import ConfigError, RequestError

_PARAM = "logits_processors"


def processor_classes(given: Iterable[str | type]) -> tuple[type[LogitsProcessor], ...]:
    """Raises ConfigError naming what cannot be imported or is no LogitsProcessor."""
    return tuple(_resolved(entry) for entry in given)


def _resolved(entry: str | type) -> type[LogitsProcessor]:
    found: Any = entry
    if isinstance(entry, str):
        module, colon, name = entry.partition(":")
        if not (module and colon and name):
            raise ConfigError(f"--logits-processors needs package.module:Class, got {entry[:100]!r}", param=_PARAM)
        try:
            found = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        except Exception as error:  # importing runs foreign code, which may raise anything
            raise ConfigError(
                f"--logits-processors {entry[:100]}: {type(error).__name__}: {error}", param=_PARAM,
                fix="Install the package that holds it, or set PYTHONPATH.",
            ) from error  # fmt: skip
    if not (isinstance(found, type) and issubclass(found, LogitsProcessor)):
        raise ConfigError(
            f"--logits-processors {entry!r} is no class derived from headway.engine.logits_processor.LogitsProcessor", param=_PARAM
        )
    return found


def make_processors(classes: Iterable[type[LogitsProcessor]], config: EngineConfig) -> list[LogitsProcessor]:
    """Raises ConfigError if one cannot be made."""
    made = []
    for kind in classes:
        try:
            made.append(kind(config, torch.device("cpu"), False))
        except Exception as error:
            raise ConfigError(f"logits processor {kind.__qualname__} cannot be made: {type(error).__name__}: {error}", param=_PARAM) from error
    return made


def check_extra_args(params: SamplingParams, classes: Iterable[type[LogitsProcessor]]) -> None:
    """Ask every processor whether it takes the request. Raises RequestError, also for arguments that nobody would read."""
    classes = tuple(classes)
    if params.extra_args and not classes:
        raise RequestError(
            "extra_args (vllm_xargs) are arguments of logits processors, and none is loaded", param="vllm_xargs",
            fix="Leave them out, or start with --logits-processors.",
        )  # fmt: skip
    for kind in classes:
        try:
            kind.validate_params(params)
        except Exception as error:
            raise RequestError(f"{kind.__qualname__} refuses the request: {str(error)[:500]}", param="vllm_xargs") from error
