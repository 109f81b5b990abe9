"""Tokenizers and configurations that are not those of the model: at a path, under a short name, or on the hub."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.cache_folders import hub_cache
from headway.artifacts.folder_contents import tokenizer_files
from headway.artifacts.hub import hub_small_files
from headway.artifacts.reference import parse_reference
from headway.artifacts.resolve import locate


def tokenizer_path(
    reference: str, *, revision: str | None = None, cache_dir: str | Path | None = None, accept_licence: Collection[str] = ()
) -> str:
    """A local folder or file for `load_tokenizer`. Of a hub repository only the small files are fetched.

    Raises ArtifactError.
    """
    return str(_place(reference, revision, cache_dir, accept_licence, lambda folder: tokenizer_files(folder) is not None))


def other_config(
    reference: str, *, cache_dir: str | Path | None = None, accept_licence: Collection[str] = ()
) -> Mapping[str, Any]:
    """config.json of another folder, file, short name or hub repository. Raises ArtifactError."""
    found = _place(reference, None, cache_dir, accept_licence, lambda folder: (folder / "config.json").exists())
    return read_json_object(found / "config.json" if found.is_dir() else found)


def _place(
    reference: str, revision: str | None, cache_dir: str | Path | None, accept_licence: Collection[str],
    enough: Callable[[Path], bool],
) -> Path:  # fmt: skip
    parsed = parse_reference(reference, revision=revision)
    if parsed.kind == "path":  # a single file is fine here
        return Path(parsed.name)
    if parsed.kind == "hub":
        return hub_small_files(parsed.name, parsed.revision, hub_cache(cache_dir), enough)
    return locate(reference, revision=revision, cache_dir=cache_dir, accept_licence=accept_licence).path
