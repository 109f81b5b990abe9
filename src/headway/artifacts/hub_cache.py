"""Finding a model in the cache of huggingface_hub by the documented folder layout: no library, no network, no writes.

Layout: `models--OWNER--NAME/refs/REVISION` holds a commit, `snapshots/COMMIT/` the files.
Source: https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.artifacts.folder_contents import tokenizer_files
from headway.artifacts.gguf_files import read_gguf_model
from headway.artifacts.hub_files import gguf_matching
from headway.artifacts.safetensors_folder import read_weight_files
from headway.errors import ArtifactError

NO_TOKENIZER: Final = "a tokenizer"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
# Reasons that mean "this was not downloaded to the end", as opposed to "this is damaged or unusable".
# Files of a wrong size count as incomplete, too: the hub knows the right size, so a start with a network replaces them.
_INCOMPLETE: Final = frozenset(
    {"missing_shards", "no_weights", "dangling_link", "missing_file", "missing_config", "truncated", "trailing_bytes", "empty_file",
     "lfs_pointer", "html_page", "error_answer"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CachedSnapshot:
    """A snapshot folder. `lacks` says what is missing, in words, or None when a model can be loaded from it."""

    folder: Path
    commit: str
    lacks: str | None


def storage_folder(repo: str, cache: Path) -> Path:
    return cache / f"models--{repo.replace('/', '--')}"


def find_snapshot(repo: str, revision: str | None, variant: str | None, cache: Path) -> CachedSnapshot | None:
    """The cached snapshot of `repo` at `revision` (a commit, branch or tag; None = main), or None.

    Damaged weight files do not raise here; they are found again, and named, when the model is inspected.
    """
    storage = storage_folder(repo, cache)
    wanted = revision or "main"
    if _COMMIT.fullmatch(wanted):
        commit = wanted
    else:
        reference = storage / "refs" / wanted
        try:
            if not reference.resolve().is_relative_to((storage / "refs").resolve()):
                return None
            commit = reference.read_text("ascii").strip()
        except (OSError, ValueError):
            return None
        if not _COMMIT.fullmatch(commit):
            return None
    folder = storage / "snapshots" / commit
    return CachedSnapshot(folder, commit, _lacks(folder, variant)) if folder.is_dir() else None


def _lacks(folder: Path, variant: str | None) -> str | None:
    names = sorted(entry.name for entry in folder.iterdir() if entry.exists())
    ggufs = [name for name in names if name.endswith(".gguf")]
    if variant is not None or (ggufs and "config.json" not in names):
        return _lacks_gguf(folder, gguf_matching(ggufs, variant), variant)
    if "config.json" not in names:
        return "config.json"
    try:
        read_weight_files(folder)
    except ArtifactError as error:
        if error.reason in _INCOMPLETE:
            return error.message
    return None if tokenizer_files(folder) is not None else NO_TOKENIZER


def _lacks_gguf(folder: Path, names: list[str], variant: str | None) -> str | None:
    if not names:
        return f"a GGUF file{f' of {variant}' if variant else ''}"
    try:
        read_gguf_model(folder / names[0])
    except ArtifactError as error:
        if error.reason in _INCOMPLETE:
            return error.message
    return None


def spelled_as_cached(repo: str, cache: Path) -> str:
    """`repo` in the letter case of the cache, which is the hub's: its names differ in more than case. `repo` itself if it is not there."""
    if storage_folder(repo, cache).is_dir():
        return repo
    return next((known for known in cached_ids(cache) if known.lower() == repo.lower()), repo)


def cached_ids(cache: Path) -> tuple[str, ...]:
    """Every `owner/name` that has a folder in the cache."""
    try:
        names = [entry.name for entry in cache.iterdir()]
    except OSError:
        return ()
    return tuple(
        sorted(name[8:].replace("--", "/", 1) for name in names if name.startswith("models--") and "--" in name[8:])
    )
