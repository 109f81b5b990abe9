"""The texts of a knowledge base: examples of each of its labels, from a manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from headway.errors import ConfigError
from headway.router.config.document.model_catalog import KnowledgeBase

_MOST_BYTES = 16 * 1024 * 1024
_MOST_EXEMPLARS = 20_000


def read_exemplars(base: KnowledgeBase, folder: Path) -> Mapping[str, list[str]]:
    """The exemplars of each label, in the order of the manifest. `folder` is the place of `base.source.path`.

    Raises ConfigError for a manifest that is outside of the folder, cannot be read, or is not one, and for groups and thresholds of labels that
    it does not have.
    """
    manifest = (folder / base.source.manifest).resolve()
    if not manifest.is_relative_to(folder.resolve()):
        raise _refused(base, f"its manifest {base.source.manifest!r:.80} lies outside of {base.source.path!r:.80}")
    try:
        if manifest.stat().st_size > _MOST_BYTES:
            raise _refused(base, f"its manifest has more than {_MOST_BYTES} bytes")
        read = json.loads(manifest.read_bytes())
    except OSError as error:
        raise _refused(base, f"{manifest.name} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise _refused(base, f"{manifest.name} is not JSON: {error}") from error
    labels = read.get("labels") if isinstance(read, dict) else None
    if not isinstance(labels, dict) or not labels:
        raise _refused(base, f"{manifest.name} must have an object `labels`")
    found = {label: _texts(base, label, entry) for label, entry in labels.items()}
    if sum(map(len, found.values())) > _MOST_EXEMPLARS:
        raise _refused(base, f"it has more than {_MOST_EXEMPLARS} exemplars")
    _check_names(base, found)
    return found


def _texts(base: KnowledgeBase, label: str, entry: object) -> list[str]:
    texts = entry.get("exemplars") if isinstance(entry, dict) else None
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise _refused(base, f"label {label!r:.80} needs `exemplars`, a list of texts")
    return texts


def _check_names(base: KnowledgeBase, found: Mapping[str, list[str]]) -> None:
    named = {label for members in base.groups.values() for label in members} | set(base.label_thresholds)
    unknown = sorted(named - found.keys())
    if unknown:
        raise _refused(base, f"groups or label_thresholds name labels that the manifest does not have: {', '.join(unknown[:8])}")


def _refused(base: KnowledgeBase, what: str) -> ConfigError:
    return ConfigError(f"knowledge base {base.name!r:.80}: {what}", param="global.model_catalog.kbs", fix="Correct the manifest or its `source`.")
