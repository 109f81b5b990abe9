"""Which licence a model states, and which licences a person must accept before a download."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from headway.errors import ArtifactError

MAX_README_BYTES: Final = 1 << 20


def licence_of_folder(folder: Path) -> str | None:
    """`license` of the YAML front matter of README.md, or None. A damaged README is no reason to refuse a model."""
    import yaml

    try:
        with (folder / "README.md").open("rb") as file:
            text = file.read(MAX_README_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    if not text.startswith("---"):
        return None
    front_matter, marker, _ = text[3:].partition("\n---")
    if not marker:
        return None
    try:
        fields = yaml.safe_load(front_matter)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    name, fuller = fields.get("license"), fields.get("license_name")
    if isinstance(name, str) and name == "other" and isinstance(fuller, str):
        return fuller
    return name if isinstance(name, str) else None


def licence_of_gguf(metadata: Mapping[str, Any]) -> str | None:
    """`general.license` (an SPDX name) or, failing that, `general.license.name`."""
    for key in ("general.license", "general.license.name"):
        value = metadata.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def require_acceptance(model: str, licence: str, key: str | None, link: str | None, accepted: Collection[str]) -> None:
    """Refuse a model whose terms must be accepted (`key` is not None) unless `key` is among `accepted`."""
    if key is None or key in accepted:
        return
    where = f" ({link})" if link else ""
    raise ArtifactError(
        f"{model} is under {licence}{where}, which you must read and accept before it is downloaded or used",
        reason="licence_not_accepted",
        param="accept_licence",
        fix=f"Add `--accept-licence {key}` if you accept them.",
    )
