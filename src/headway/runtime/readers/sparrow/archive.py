"""A `.sparrow` file: a zip with config.json, tokenizer.json and model.npz, read with limits."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from headway.errors import PackageError

SUFFIX: Final = ".sparrow"
MEMBERS: Final = ("config.json", "tokenizer.json", "model.npz")
MAX_MEMBER_BYTES: Final = 512 << 20  # the largest published package unpacks to 50 MB
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class SparrowConfig:
    """`numbers`: the state's `key: number` pairs are read too. `max_tokens` bounds each text. `temperatures` by question
    type ("choice", "noul", "score")."""

    name: str
    numbers: bool
    max_tokens: int
    temperatures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SparrowArchive:
    """`arrays` as stored: a matrix W is `W` or the pair `W.q8` [rows, columns] int8 and `W.scale` [rows] float32."""

    config: SparrowConfig
    vocabulary: Mapping[str, int]
    arrays: Mapping[str, Array]


def sparrow_file(path: Path) -> Path | None:
    """The `.sparrow` file that `path` is or holds as the only one, or None."""
    if path.is_dir():
        found = sorted(path.glob(f"*{SUFFIX}"))
        return found[0] if len(found) == 1 else None
    return path if path.suffix == SUFFIX and path.is_file() else None


def read_archive(path: Path) -> SparrowArchive:
    """All of it, arrays as stored.

    Raises PackageError (`invalid_package`, `unsupported_layout`).
    """
    with _open(path) as archive:
        config = _config(path, _json_member(path, archive, "config.json"))
        vocabulary = _json_member(path, archive, "tokenizer.json").get("vocab")
        raw = _member(path, archive, "model.npz")
    if not isinstance(vocabulary, dict) or not all(type(index) is int for index in vocabulary.values()):
        _damaged(path, 'tokenizer.json must hold an object "vocab" of token to id')
    if "[UNK]" not in vocabulary:
        _damaged(path, "the vocabulary has no [UNK] token")
    return SparrowArchive(config, vocabulary, _arrays(path, raw))


def _arrays(path: Path, raw: bytes) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as inner:
            if sum(entry.file_size for entry in inner.infolist()) > MAX_MEMBER_BYTES:
                _damaged(path, f"the arrays of model.npz exceed {MAX_MEMBER_BYTES >> 20} MiB")
        with np.load(io.BytesIO(raw), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        _damaged(path, f"model.npz cannot be read: {error}")


def _config(path: Path, config: dict[str, Any]) -> SparrowConfig:
    arch = config.get("arch")
    if arch not in ("static", "pico"):
        raise PackageError(
            f"{path.name} has the architecture {arch!r}; of the .sparrow packages those with static word vectors are served",
            reason="unsupported_layout",
            param=str(path),
            fix='Use one whose config.json says "arch": "static", such as sparrow-nano-general.',
        )
    temperatures = config.get("temperature_by_kind", {})
    if not isinstance(temperatures, dict) or not all(_is_positive(value) for value in temperatures.values()):
        _damaged(path, "temperature_by_kind must map question types to numbers above 0")
    max_tokens = config.get("max_len", 512)
    if type(max_tokens) is not int or not 1 <= max_tokens <= 1 << 20:
        _damaged(path, f"max_len must be a number of tokens, found {max_tokens!r}")
    return SparrowConfig(str(config.get("name", path.stem)), bool(config.get("kv")), max_tokens, temperatures)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _open(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        _damaged(path, f"it is no zip file: {error}")


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        entry = archive.getinfo(name)
    except KeyError:
        _damaged(path, f"{name} is missing; it must hold {', '.join(MEMBERS)}")
    if entry.file_size > MAX_MEMBER_BYTES:
        _damaged(path, f"{name} unpacks to {entry.file_size} bytes, the limit is {MAX_MEMBER_BYTES >> 20} MiB")
    try:
        return archive.read(entry)
    except (OSError, EOFError, RuntimeError, NotImplementedError, ValueError, zipfile.BadZipFile) as error:
        _damaged(path, f"{name} cannot be unpacked: {error}")


def _json_member(path: Path, archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    try:
        value = json.loads(_member(path, archive, name))
    except (ValueError, RecursionError) as error:
        _damaged(path, f"{name} is not valid JSON: {error}")
    if not isinstance(value, dict):
        _damaged(path, f"{name} must hold a JSON object")
    return value


def _damaged(path: Path, what: str) -> NoReturn:
    raise PackageError(
        f"{path.name} is no usable .sparrow package: {what}",
        reason="invalid_package",
        param=str(path),
        fix="Download it again.",
    )
