"""Common models as a table of configurations: for what runs on a card, and for models known by their size only."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from headway.capacity.config_shape import config_shape
from headway.capacity.model_shape import ModelShape
from headway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class KnownModel:
    """`name` is short, `reference` the hub id; `shape` follows from its configuration."""

    name: str
    reference: str
    shape: ModelShape


@cache
def known_models() -> Mapping[str, KnownModel]:
    """Short name -> model, in the order of the table, smallest first."""
    table = tomllib.loads(files("headway.capacity").joinpath("model_sizes.toml").read_text("utf-8"))
    return {name: KnownModel(name, fields["id"], config_shape(fields["config"], name)) for name, fields in table.items()}


def known_model(text: str) -> KnownModel | None:
    """By short name or hub id, letter case aside."""
    wanted = text.lower()
    return next((model for model in known_models().values() if wanted in (model.name, model.reference.lower())), None)


def shape_of_size(parameters: int) -> ModelShape:
    """A model of which only the size is known: the dense model of the table that is nearest in size, scaled to it.

    Layers, heads and cache are those of that model, which a note says. Raises ConfigError for no size at all.
    """
    if parameters < 1:
        raise ConfigError(f"--params must be positive, found {parameters}", param="params")
    dense = [model for model in known_models().values() if model.shape.active >= 0.9 * (model.shape.parameters - model.shape.embeddings)]
    near = min(dense, key=lambda model: abs(math.log(model.shape.parameters / parameters)))
    factor = parameters / near.shape.parameters
    return replace(
        near.shape, name=f"{_short(parameters)} parameters", parameters=parameters, embeddings=int(near.shape.embeddings * factor),
        head=int(near.shape.head * factor), active=int(near.shape.active * factor), architecture="",
        notes=(f"only the size is known: layers, heads and cache are taken from {near.name}, the nearest dense model of the table",),
    )  # fmt: skip


def _short(count: int) -> str:
    for scale, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= scale:
            return f"{count / scale:.4g}{letter}"
    return str(count)
