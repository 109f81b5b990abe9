"""The files of a trained selector: `selector.json` says what it is, `arrays.npz` holds its numbers. Neither can hold code."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from headway.errors import ConfigError
from headway.router.selection.trained.predictors import PREDICTORS, Arrays, Matrix, Predictor

DESCRIPTION, ARRAYS = "selector.json", "arrays.npz"
FORMAT = 1
_MOST_BYTES = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Description:
    """`models` are the columns of the scores. `representation` identifies the embedding model whose vectors it was trained on; None when the rows
    brought their own. `majority` is the model that was best most often. `settings` and `held_out` are for people."""

    algorithm: str
    models: tuple[str, ...]
    width: int
    representation: str | None
    rows: int
    majority: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    held_out: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trained:
    description: Description
    predictor: Predictor

    def scores(self, vectors: Matrix) -> Matrix:
        """[rows, models] of unit vectors [rows, width]."""
        return self.predictor.scores(vectors)


def save(folder: Path, description: Description, arrays: Arrays) -> None:
    """Write both files, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{ARRAYS}.{os.getpid()}.npz"
    np.savez_compressed(temporary, **arrays)  # type: ignore[arg-type]
    temporary.replace(folder / ARRAYS)
    temporary = folder / f".{DESCRIPTION}.{os.getpid()}"
    temporary.write_bytes(orjson.dumps({"format": FORMAT, **asdict(description)}, option=orjson.OPT_INDENT_2))
    temporary.replace(folder / DESCRIPTION)


def load(folder: Path) -> Trained:
    """Raises ConfigError `selector_unusable` for files that are missing, damaged, or do not fit each other."""
    try:
        told = orjson.loads((folder / DESCRIPTION).read_bytes())
        if told.pop("format", None) != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        description = Description(**{**told, "models": tuple(told["models"])})
        arrays = _arrays(folder / ARRAYS)
        predictor = PREDICTORS[description.algorithm].of(arrays)
        scores = predictor.scores(np.zeros((1, description.width), np.float32))
        if scores.shape != (1, len(description.models)):
            raise ValueError("the numbers are not for these models")
    except FileNotFoundError as error:
        raise _unusable(folder, f"{Path(error.filename).name} is missing") from None
    except (OSError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile) as error:
        raise _unusable(folder, str(error)[:200]) from None
    return Trained(description, predictor)


def _arrays(path: Path) -> dict[str, Matrix]:
    with zipfile.ZipFile(path) as packed:
        if sum(member.file_size for member in packed.infolist()) > _MOST_BYTES:
            raise ValueError(f"{path.name} has more than {_MOST_BYTES} bytes")
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: np.ascontiguousarray(stored[name], np.float32) for name in stored.files}
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError(f"{path.name} holds numbers that are not finite")
    return arrays


def _unusable(folder: Path, why: str) -> ConfigError:
    return ConfigError(
        f"the trained selector in {folder} cannot be used: {why}", reason="selector_unusable", fix="Train it again with vllm-sr optimize train."
    )
