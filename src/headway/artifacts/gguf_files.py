"""A GGUF model of one file or of several numbered ones (`NAME-00001-of-00003.gguf`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.artifacts.card import TensorInfo
from headway.artifacts.gguf_header import GgufHeader, read_gguf_header
from headway.errors import ArtifactError

MAX_SPLITS: Final = 1_000
_NUMBERED = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")


@dataclass(frozen=True, slots=True)
class GgufModel:
    """`metadata` is that of the first file; `trailing_bytes` counts bytes after the last tensor and its padding."""

    files: tuple[Path, ...]
    metadata: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]
    trailing_bytes: int


def read_gguf_model(path: Path) -> GgufModel:
    """Read the header of `path` and of its sister files, whichever of them `path` is.

    Raises ArtifactError: `missing_shards`, `tensor_twice`, or a reason of `read_gguf_header`.
    """
    paths = _sister_files(path)
    headers = [read_gguf_header(each) for each in paths]
    first = headers[0]
    declared = first.metadata.get("split.count", 1)
    if isinstance(declared, int) and declared > 1 and declared != len(paths):
        raise ArtifactError(
            f"{path} is one of {declared} files of a split model, but is not named NAME-00001-of-{declared:05d}.gguf",
            reason="missing_shards",
            param=str(path),
            fix="Give the files back the names they were made with.",
        )
    tensors: dict[str, TensorInfo] = {}
    for header in headers:
        for name, tensor in header.tensors.items():
            if name in tensors:
                raise ArtifactError(
                    f"tensor {ascii(name)[:80]} is in two files: {tensors[name].file.name} and {header.path.name}",
                    reason="tensor_twice",
                    param=str(header.path),
                )
            tensors[name] = tensor
    return GgufModel(tuple(paths), first.metadata, tensors, sum(map(_trailing, headers)))


# general.type, or an architecture that no text model has -> reason, what it is, fix
_OTHER_KINDS: Final = {
    "adapter": ("adapter_only", "a LoRA adapter", "Merge it into its base model (`llama-export-lora`) and name the result."),
    "mmproj": ("not_a_model", "the image or sound part of a model", "Name the GGUF file of the language model."),
    "clip": ("not_a_model", "the image or sound part of a model", "Name the GGUF file of the language model."),
    "imatrix": ("not_a_model", "an importance matrix for quantizing", "Name the GGUF file of the model."),
    "vocab": ("no_weights", "a vocabulary", "Name a file that has weights."),
}  # fmt: skip


def refuse_other_gguf(path: Path, metadata: Mapping[str, Any], tensors: Mapping[str, TensorInfo]) -> None:
    """Raises ArtifactError (`adapter_only`, `not_a_model`, `no_weights`) for a GGUF file that is no model."""
    stated = (metadata.get("general.type"), metadata.get("general.architecture"), None if tensors else "vocab")
    for kind in stated:
        if isinstance(kind, str) and kind in _OTHER_KINDS:
            reason, what, fix = _OTHER_KINDS[kind]
            raise ArtifactError(
                f"{path} is {what}, not a model (general.type {stated[0]!r:.40}, general.architecture {stated[1]!r:.40},"
                f" {len(tensors)} tensors)",
                reason=reason,
                param=str(path),
                fix=fix,
            )


def _trailing(header: GgufHeader) -> int:
    padded_end = -(-header.data_end // header.alignment) * header.alignment
    return max(0, header.size - padded_end)


def _sister_files(path: Path) -> list[Path]:
    found = _NUMBERED.fullmatch(path.name)
    if found is None or not 1 < int(found[3]) <= MAX_SPLITS:
        return [path]
    paths = [path.with_name(f"{found[1]}-{i:05d}-of-{found[3]}.gguf") for i in range(1, int(found[3]) + 1)]
    missing = [each.name for each in paths if not each.is_file()]
    if missing:
        raise ArtifactError(
            f"{path.parent} lacks {len(missing)} of {len(paths)} files of a split model: {', '.join(missing[:5])}",
            reason="missing_shards",
            param=str(path),
            fix="This is an incomplete download: fetch the files named here too.",
        )
    return paths
