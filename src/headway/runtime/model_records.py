"""Small JSON files that are kept about a model: beside a local package, else in Headway's cache."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.artifacts.cache_folders import headway_cache, hub_cache
from headway.runtime.package import Package


def beside(package: Package, name: str) -> Path:
    """A file in the folder of the package, or next to a package that is one file."""
    return package.path / name if package.is_folder else package.path.with_name(f"{package.path.name}.{name}")


def is_ours(package: Package, path: Path, cache_dir: str | None = None) -> bool:
    """Whether `path`, a file beside the package, may be written: its folder belongs to no cache, is no snapshot with a list of
    its files, and is writable."""
    folder = path.parent.resolve()
    caches = [headway_cache(cache_dir).resolve(), hub_cache(cache_dir).resolve()]
    foreign = package.repo is not None or any(folder.is_relative_to(cache) for cache in caches) or package.has("MODEL_MANIFEST.json")
    return not foreign and os.access(folder, os.W_OK)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replaces the file at once. Raises OSError; ValueError for numbers that JSON does not have."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.write_text(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)
