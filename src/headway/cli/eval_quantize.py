"""The first half of `headway eval MODEL --quantize METHOD`: the model that is then measured against what it was made of."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from headway.artifacts.inspect import inspect
from headway.cli.quantize import default_folder
from headway.compression.method import METHODS
from headway.compression.request import QuantizeRequest
from headway.compression.run import quantize
from headway.errors import ConfigError
from headway.evaluation.scoring import Progress


def quantized(model: str, method: str, output: Path | None, accept_licence: Collection[str], progress: Progress) -> Path:
    """The folder that was written, beside the working directory's other files unless `output` says where. Raises ConfigError, ArtifactError,
    NotBuiltError."""
    if method not in METHODS:
        raise ConfigError(f"there is no method {method!r:.40}", param="quantize", fix=f"Choose one of {', '.join(METHODS)}.")
    folder = output or default_folder(model, METHODS[method])
    card = inspect(model, accept_licence=accept_licence)
    quantize(card, QuantizeRequest(METHODS[method], folder), lambda label, done, total: progress(label, done / max(total, 1)))
    return folder
