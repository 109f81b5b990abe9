"""Tokenizers and configurations that are not those of the model: at a path, under a short name, or on the hub."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.cache_folders import headway_cache, hub_cache
from headway.artifacts.folder_contents import tokenizer_files
from headway.artifacts.hub import hub_small_files
from headway.artifacts.reference import parse_reference
from headway.artifacts.registry import registry
from headway.artifacts.registry_fetch import fetch


def tokenizer_path(reference: str, *, revision: str | None = None, cache_dir: str | Path | None = None) -> str:
    """A local folder or file for `load_tokenizer`. Of a hub repository only the small files are fetched.

    Raises ArtifactError.
    """
    return str(_place(reference, revision, cache_dir, lambda folder: tokenizer_files(folder) is not None))


def other_config(reference: str, *, revision: str | None = None, cache_dir: str | Path | None = None) -> Mapping[str, Any]:
    """config.json of another folder, file, short name or hub repository. Raises ArtifactError."""
    found = _place(reference, revision, cache_dir, lambda folder: (folder / "config.json").exists())
    return read_json_object(found / "config.json" if found.is_dir() else found)


def _place(reference: str, revision: str | None, cache_dir: str | Path | None, enough: Callable[[Path], bool]) -> Path:
    parsed = parse_reference(reference, revision=revision)
    if parsed.kind == "path":
        return Path(parsed.name)
    if parsed.kind == "registry":
        return fetch(registry()[parsed.name], headway_cache(cache_dir))
    return hub_small_files(parsed.name, parsed.revision, hub_cache(cache_dir), enough)
