"""Everything there is to know about a model before a weight is read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from headway.artifacts.card import ModelCard
from headway.artifacts.model_cards import card_of_path
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.resolve import locate
from headway.errors import ArtifactError


def inspect(
    reference: str,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    accept_licence: Collection[str] = (),
    progress: ProgressCallback | None = None,
) -> ModelCard:
    """Locate the model (downloading it if need be) and read its headers and JSON files; all files are checked.

    Code in a model repository is never imported. A card means that every weight file is there and whole in size;
    anything else raises ArtifactError. What does not keep a model from loading is in `problems`.
    """
    found = locate(reference, revision=revision, cache_dir=cache_dir, accept_licence=accept_licence, progress=progress)
    if found.entry is not None and not any(name.endswith((".gguf", ".safetensors")) for name in found.entry.files):
        raise ArtifactError(
            f"{reference} is no language model but this: {found.entry.about}; its files are in {found.path}",
            reason="not_a_model",
            param="model",
        )
    try:
        return card_of_path(found.path, reference, revision=found.revision, licence=found.licence)
    except OSError as error:  # a folder that cannot be listed, a link that leads in a circle, a disk that fails
        raise ArtifactError(
            f"{error.filename or found.path} cannot be read: {error.strerror or error}",
            reason="unreadable_file",
            param=str(found.path),
            fix="Check path and permissions.",
        ) from None
