"""The model of a launch: its configuration, files and tensors, from headers only; nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headway.artifacts.cache_folders import headway_cache, hub_cache
from headway.artifacts.card import ModelCard
from headway.artifacts.hub_cache import cached_ids, find_snapshot
from headway.artifacts.model_cards import card_of_path
from headway.artifacts.registry import registry
from headway.artifacts.registry_fetch import fetched
from headway.errors import ArtifactError

_GIB: Final = 2**30
_HEAD_BYTES: Final = 16
_FILES_AT_MOST: Final = 400
_TENSORS_AT_MOST: Final = 4000
_JSON_AT_MOST: Final = 4 << 20
_WEIGHTS: Final = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".json", ".model", ".jinja", ".txt")


def model_part(reference: str, cache: Path | None = None) -> dict[str, Any]:
    """The `model` of a context. A name that is not on disk gives its id and what is cached; a damaged folder gives its
    files, so that the rules can say which one is wrong."""
    path = model_on_disk(reference, cache)
    part: dict[str, Any] = {"id": reference} if path is None else {"id": reference, "path": str(path)}
    part["cached"] = [*cached_ids(hub_cache(cache)), *registry()]
    if path is None:
        return part
    part["files"] = _files(path)
    part |= {name: content for name, content in (("config", _json(path, "config.json")), ("adapter", _json(path, "adapter_config.json"))) if content}
    try:
        part |= _card(card_of_path(path, reference))
    except (ArtifactError, OSError) as error:
        part["problem"] = str(error)
    return part


def model_on_disk(reference: str, cache: Path | None = None) -> Path | None:
    """A path, a model of the hub or a short name whose files are here; None when they are not, without asking anybody."""
    given = Path(reference).expanduser()
    if given.exists():
        return given
    if (entry := registry().get(reference)) is not None:
        return fetched(entry, headway_cache())
    snapshot = find_snapshot(reference, None, None, hub_cache(cache)) if "/" in reference else None
    return None if snapshot is None else snapshot.folder


def _card(card: ModelCard) -> dict[str, Any]:
    tensors = [{"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape)} for tensor in card.tensors.values()]
    return {
        "config": dict(card.config),
        "weights_gib": round(card.weight_bytes / _GIB, 3),
        "dtype": max(card.dtype_bytes, key=lambda name: card.dtype_bytes[name], default=""),
        "quantization": dict(card.quantization) if card.quantization else None,
        "tensors": tensors[:_TENSORS_AT_MOST],
        "tokenizer": card.tokenizer,
        "chat_template": card.chat_template,
        "problems": list(card.problems),
    }


def _files(path: Path) -> list[dict[str, Any]]:
    """Sizes, sizes that the index or a lock promises, and the first bytes of weight files."""
    files = [path] if path.is_file() else sorted(entry for entry in path.iterdir() if entry.is_file())
    found: list[dict[str, Any]] = []
    for file in files[:_FILES_AT_MOST]:
        if file.suffix not in _WEIGHTS:
            continue
        entry: dict[str, Any] = {"name": file.name, "bytes": file.stat().st_size}
        if file.suffix in (".safetensors", ".gguf", ".bin"):
            with file.open("rb") as stream:
                entry["head"] = repr(stream.read(_HEAD_BYTES))[2:-1]
            if (expected := _expected_bytes(file)) is not None:
                entry["expected_bytes"] = expected
        found.append(entry)
    return found


def _expected_bytes(file: Path) -> int | None:
    """What a safetensors header says the whole file takes: 8 + header + the largest end of a tensor."""
    if file.suffix != ".safetensors":
        return None
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= 100 << 20:
            return None
        try:
            header = json.loads(stream.read(length))
        except (ValueError, RecursionError):
            return None
    ends = [
        entry["data_offsets"][1]
        for entry in (header.values() if isinstance(header, dict) else ())
        if isinstance(entry, Mapping) and isinstance(entry.get("data_offsets"), list) and len(entry["data_offsets"]) == 2
    ]
    return 8 + length + max(ends) if ends and all(isinstance(end, int) for end in ends) else None


def _json(folder: Path, name: str) -> dict[str, Any]:
    file = folder / name
    if not folder.is_dir() or not file.is_file() or file.stat().st_size > _JSON_AT_MOST:
        return {}
    try:
        content = json.loads(file.read_text("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
