"""A model reference -> local files: the one way in for everything that loads or inspects a model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from headway.artifacts.cache_folders import headway_cache, hub_cache
from headway.artifacts.hub import hub_model
from headway.artifacts.hub_cache import cached_ids
from headway.artifacts.licence import require_acceptance
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.reference import parse_reference
from headway.artifacts.registry import RegistryModel, registry
from headway.artifacts.registry_fetch import fetch
from headway.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class Located:
    """Where a model is. `licence` and `revision` are what its source says, or None; `entry` is its line of the table."""

    path: Path
    revision: str | None = None
    licence: str | None = None
    entry: RegistryModel | None = None


def locate(
    reference: str,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    accept_licence: Collection[str] = (),
    progress: ProgressCallback | None = None,
) -> Located:
    """Find the files, downloading them when they are not there. `cache_dir` replaces both caches.

    Raises ArtifactError.
    """
    hub_folder = hub_cache(cache_dir)
    parsed = parse_reference(reference, revision=revision, known=cached_ids(hub_folder))
    if parsed.kind == "path":
        return Located(_local(Path(parsed.name)))
    if parsed.kind == "registry":
        model = registry()[parsed.name]
        require_acceptance(model.name, model.licence, model.licence_key, model.licence_terms, accept_licence)
        path = fetch(model, headway_cache(cache_dir), progress=progress)
        return Located(path, model.revision, model.licence, model)
    found = hub_model(parsed.name, parsed.revision, parsed.variant, hub_folder, progress=progress)
    return Located(found.path, found.commit)


def resolve(
    reference: str,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    accept_licence: Collection[str] = (),
    progress: ProgressCallback | None = None,
) -> Path:
    """The local folder or file of a model: a folder, a `.gguf` file, `owner/name[:variant][@revision]` or a short name.

    A second call for the same reference makes no connection. Raises ArtifactError.
    """
    return locate(
        reference, revision=revision, cache_dir=cache_dir, accept_licence=accept_licence, progress=progress
    ).path


def _local(path: Path) -> Path:
    """A path as it is, or an error that says what it is instead of a model."""
    if path.is_dir() and not path.name.endswith(".gguf"):
        return path
    if path.name.endswith((".safetensors", ".bin", ".pt", ".pth", ".json")) and path.exists():
        raise ArtifactError(
            f"{path} is one file of a model; a model of this format is the folder with config.json and the weights",
            reason="not_a_model",
            param="model",
            fix=f"Name the folder: {path.parent}",
        )
    return path  # the GGUF reader says what is wrong with anything else
