"""Which files of a package folder hold its weights: one, or shards that an index names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headway.artifacts.bounded_json import read_json_object
from headway.errors import PackageError
from headway.runtime.readers.unpublished import not_of_the_format

INDEX: Final = "model.safetensors.index.json"
SINGLE: Final = "model.safetensors"


def weight_files(folder: Path) -> tuple[str, ...]:
    """Names of the safetensors files, sorted. Raises PackageError (`invalid_package`, `no_weights`)."""
    if (folder / INDEX).is_file():
        mapping = read_json_object(folder / INDEX).get("weight_map")
        if not isinstance(mapping, dict) or not mapping or not all(isinstance(name, str) and "/" not in name for name in mapping.values()):
            raise not_of_the_format(INDEX, "weight_map, tensors and the files of this folder that hold them", mapping)
        return tuple(sorted(set(mapping.values())))
    if (folder / SINGLE).is_file():
        return (SINGLE,)
    raise PackageError(f"{folder} has no {SINGLE} and no {INDEX}", reason="no_weights", param=str(folder), fix="Download the package again.")
