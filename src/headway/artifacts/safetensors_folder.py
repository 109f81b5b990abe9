"""The weight files of a model folder in Hugging Face layout: one file, or shards named by an index. All checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.card import TensorInfo
from headway.artifacts.safetensors_header import read_safetensors_header
from headway.errors import ArtifactError

SINGLE: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
MAX_SHARDS: Final = 10_000
_NUMBERED = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors")
_UNSAFE = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack")
_RESUME = "This is an incomplete download: run it again (`hf download OWNER/NAME`)."


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """`ignored` are safetensors files of the folder that hold the same weights again or are in no index."""

    files: tuple[Path, ...]
    tensors: Mapping[str, TensorInfo]
    ignored: tuple[str, ...]


def read_weight_files(folder: Path) -> WeightFiles:
    """Find and check every weight file of `folder`.

    Raises ArtifactError: `missing_shards`, `tensor_not_in_shard`, `no_weights`, `unsafe_weights`, or a reason of the
    header reader.
    """
    present = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".safetensors"))
    index = folder / INDEX
    if index.exists() or index.is_symlink():
        return _read_indexed(folder, index, present)
    names = _without_index(folder, present)
    tensors: dict[str, TensorInfo] = {}
    for name in names:
        for tensor in read_safetensors_header(folder / name).tensors.values():
            if tensor.name in tensors:
                raise ArtifactError(
                    f"tensor {tensor.name} is in {tensors[tensor.name].file.name} and in {name} of {folder}",
                    reason="tensor_twice",
                    param=str(folder),
                    fix=f"Keep one set of weights, or add {INDEX}.",
                )
            tensors[tensor.name] = tensor
    return WeightFiles(tuple(folder / name for name in names), tensors, tuple(n for n in present if n not in names))


def _without_index(folder: Path, present: list[str]) -> list[str]:
    """Choose the files when no index says which: `model.safetensors`, else a complete numbered set, else the only one."""
    if SINGLE in present:
        return [SINGLE]
    names = [name for name in present if not name.startswith("consolidated")] or present
    if not names:
        raise _no_weights(folder)
    missing: list[str] = []
    for stem, total in sorted({(found[1], found[3]) for name in names if (found := _NUMBERED.fullmatch(name))}):
        if int(total) > MAX_SHARDS:
            raise ArtifactError(
                f"{folder} names {total} shards, the limit is {MAX_SHARDS}", reason="index_invalid", param=str(folder)
            )
        wanted = [f"{stem}-{i:05d}-of-{total}.safetensors" for i in range(1, int(total) + 1)]
        missing += [name for name in wanted if name not in names]
    if missing:
        raise _missing(folder, missing, "their numbering")
    return names


def _read_indexed(folder: Path, index: Path, present: list[str]) -> WeightFiles:
    weight_map = read_json_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ArtifactError(
            f"{index} must have a non-empty object weight_map", reason="index_invalid", param=str(index)
        )
    by_shard: dict[str, list[str]] = {}
    for tensor, shard in weight_map.items():
        # Only plain names: a path in an index must not reach outside the folder.
        if (
            not isinstance(shard, str)
            or "/" in shard
            or "\\" in shard
            or not shard.endswith(".safetensors")
            or "\0" in shard
        ):
            raise ArtifactError(
                f"{index}: weight_map must name .safetensors files of the same folder, found {shard!r:.80}",
                reason="index_invalid",
                param=str(index),
            )
        by_shard.setdefault(shard, []).append(tensor)
    missing = [shard for shard in sorted(by_shard) if not (folder / shard).is_file()]
    if missing:
        raise _missing(folder, missing, INDEX)
    headers = {shard: read_safetensors_header(folder / shard).tensors for shard in sorted(by_shard)}
    for shard, stored in headers.items():
        absent = sorted(name for name in by_shard[shard] if name not in stored)
        if absent:
            raise _not_in_shard(folder / shard, absent, headers)
    # What the index does not list is part of the checkpoint nevertheless; where two shards have it, the index decides.
    tensors = {name: tensor for stored in headers.values() for name, tensor in stored.items()}
    tensors.update((name, headers[shard][name]) for shard, names in by_shard.items() for name in names)
    ignored = tuple(name for name in present if name not in by_shard)
    return WeightFiles(tuple(folder / shard for shard in sorted(by_shard)), tensors, ignored)


def _not_in_shard(path: Path, absent: list[str], headers: Mapping[str, Mapping[str, TensorInfo]]) -> ArtifactError:
    elsewhere = next((shard for shard, stored in headers.items() if absent[0] in stored), None)
    place = f"which is in {elsewhere}" if elsewhere else "which is in none of the shards"
    return ArtifactError(
        f"{path} lacks {len(absent)} tensors that {INDEX} assigns to it, the first is {absent[0][:120]}, {place}",
        reason="tensor_not_in_shard",
        param=str(path),
        fix="Shard and index belong to different exports; download both again.",
    )


def _missing(folder: Path, names: list[str], source: str) -> ArtifactError:
    described = []
    for name in names:
        path = folder / name
        kind = " (a link to nothing)" if path.is_symlink() else " (a directory)" if path.is_dir() else ""
        described.append(name + kind)
    more = f" and {len(described) - 5} more" if len(described) > 5 else ""
    return ArtifactError(
        f"{folder} lacks weight files that {source} names: {', '.join(described[:5])}{more}",
        reason="missing_shards",
        param=str(folder),
        fix=_RESUME,
    )


def _no_weights(folder: Path) -> ArtifactError:
    unsafe = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(_UNSAFE))
    if unsafe:
        return ArtifactError(
            f"{folder} has its weights only in a format that can run code when it is read: {', '.join(unsafe[:5])}",
            reason="unsafe_weights",
            param=str(folder),
            fix="Use a revision with .safetensors, or convert it where you trust it: "
            "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER).",
        )
    if (folder / "adapter_config.json").exists():
        return ArtifactError(
            f"{folder} is a LoRA adapter, not a model",
            reason="adapter_only",
            param=str(folder),
            fix="Merge it into its base model (`merge_and_unload()` of peft) and name the result.",
        )
    return ArtifactError(
        f"{folder} has no weights: looked for {SINGLE}, {INDEX}, *.safetensors and *.gguf",
        reason="no_weights",
        param=str(folder),
        fix="Name a folder in Hugging Face layout or a .gguf file.",
    )
