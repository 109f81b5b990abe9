"""JSON files of a model folder, read with a size limit and refused with the file's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from headway.artifacts.foreign_file import foreign_error, foreign_kind, regular_file_size
from headway.errors import ArtifactError

MAX_JSON_BYTES: Final = 64 << 20  # an index of 100,000 tensors has about 10 MB
MAX_JSON_DEPTH: Final = 64


def read_json_object(path: Path) -> dict[str, Any]:
    """Read one JSON object.

    Raises ArtifactError: a reason of `regular_file_size`, a kind of `foreign_file`, `json_too_large` or `invalid_json`.
    """
    value = _read_json(path)
    if not isinstance(value, dict):
        raise _another_kind(path, "object", value)
    return value


def read_json_list(path: Path) -> list[Any]:
    """Read one JSON list. Raises ArtifactError as `read_json_object` does."""
    value = _read_json(path)
    if not isinstance(value, list):
        raise _another_kind(path, "list", value)
    return value


def _another_kind(path: Path, expected: str, found: Any) -> ArtifactError:
    return ArtifactError(
        f"{path} must hold a JSON {expected}, found {type(found).__name__}", reason="invalid_json", param=str(path)
    )


def _read_json(path: Path) -> Any:
    size = regular_file_size(path, "a JSON file")
    if size > MAX_JSON_BYTES:
        raise ArtifactError(
            f"{path} has {size} bytes, the limit for JSON files is {MAX_JSON_BYTES}",
            reason="json_too_large",
            param=str(path),
        )
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be read: {error.strerror}", reason="unreadable_file", param=str(path)
        ) from None
    if foreign_kind(raw[:1024]) is not None:
        raise foreign_error(path, "a JSON file", raw[:1024], size, otherwise="", reason="invalid_json")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(
            f"{path} is not valid JSON: {error}",
            reason="invalid_json",
            param=str(path),
            fix="Download the file again, or correct it.",
        ) from None
    if _deeper_than(value, MAX_JSON_DEPTH):
        raise ArtifactError(
            f"{path} nests deeper than {MAX_JSON_DEPTH} levels, which no file of a model does",
            reason="invalid_json",
            param=str(path),
        )
    return value


def _deeper_than(value: Any, limit: int) -> bool:
    """Level by level, without recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def read_json_object_if_present(path: Path) -> dict[str, Any]:
    """As `read_json_object`; an empty dict when nothing of that name exists (a dangling link is an error)."""
    if not path.exists() and not path.is_symlink():
        return {}
    return read_json_object(path)
