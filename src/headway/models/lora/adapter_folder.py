"""A folder that PEFT wrote -> the updates of one adapter. Everything is checked against the model before a tensor is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from headway.artifacts.card import TensorInfo
from headway.artifacts.foreign_file import regular_file_size
from headway.artifacts.safetensors_header import read_safetensors_header
from headway.errors import AdapterError, ArtifactError
from headway.layers.low_rank import LowRankUpdate, Updates
from headway.models.lora.adapter_names import FactorNames, factor_names
from headway.models.lora.adapter_settings import AdapterSettings, read_settings
from headway.models.lora.targets import Target, Targets
from headway.models.weight_transforms import row_order
from headway.quantization.dense import DENSE_DTYPES

WEIGHTS: Final = "adapter_model.safetensors"
CPU: Final = torch.device("cpu")
_PICKLED: Final = "adapter_model.bin"
_HEADER_ROOM: Final = 16 << 20  # bytes of an adapter's file that are no numbers, at most


@dataclass(frozen=True, slots=True)
class AdapterWeights:
    """`updates` by module of the decoder, in one dtype. `digest` names what they compute, bit by bit: adapters with the same digest may
    share keys and values."""

    updates: Updates
    rank: int
    nbytes: int
    digest: bytes


def read_adapter(path: str, targets: Targets, max_rank: int, dtype: torch.dtype, device: torch.device = CPU) -> AdapterWeights:
    """Read, scale and stack the matrices of one adapter, as `dtype` on `device`.

    Raises AdapterError: `adapter_not_found`, `adapter_config`, `adapter_feature`, `adapter_rank`, `adapter_pickled`, `adapter_too_large`,
    `adapter_target`, `adapter_tensor`, `adapter_shape`, `adapter_not_finite`, or what is wrong with a file.
    """
    folder = _folder(path)
    if folder is None:
        raise AdapterError(
            f"No adapter found for {path[:500]}: there is no such folder", reason="adapter_not_found", param="lora_path",
            fix="Give the folder that holds adapter_config.json, on the machine of the server.",
        )  # fmt: skip
    try:
        settings = read_settings(folder)
        if settings.largest_rank > max_rank:
            raise AdapterError(
                f"LoRA rank {settings.largest_rank} is greater than max_lora_rank {max_rank}", reason="adapter_rank", param="r",
                fix=f"Start with --max-lora-rank {settings.largest_rank} or the next allowed value above it.",
            )  # fmt: skip
        stored = _stored(folder, targets, max_rank)
        factors = factor_names(stored, targets, settings.base_model)
        _check_shapes(stored, factors, targets, settings)
        return _read(stored, factors, targets, settings, dtype, device)
    except AdapterError:
        raise
    except ArtifactError as error:
        if error.reason == "missing_file":
            raise AdapterError(f"No adapter found for {path[:500]}: {error.message}", reason="adapter_not_found", param="lora_path") from None
        raise AdapterError(error.message, reason=error.reason, param=error.param) from None


def _folder(path: str) -> Path | None:
    """None where there is none, or where no folder can be."""
    try:
        folder = Path(path).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _stored(folder: Path, targets: Targets, max_rank: int) -> Mapping[str, TensorInfo]:
    """The header of the weights. A file that is larger than an adapter of this model can be is refused before its header is parsed."""
    path = folder / WEIGHTS
    if not path.exists() and (folder / _PICKLED).exists():
        raise AdapterError(
            f"{folder.name} has {_PICKLED} and no {WEIGHTS}: a pickle can run code when it is read, so it is not", reason="adapter_pickled",
            param="lora_path", fix="Load the adapter with PEFT where you trust it, and save it again (save_pretrained writes safetensors).",
        )  # fmt: skip
    size, most = regular_file_size(path, "the weights of an adapter"), 4 * targets.numbers(max_rank) + _HEADER_ROOM
    if size > most:
        raise AdapterError(
            f"{WEIGHTS} has {size} bytes; an adapter of rank {max_rank} (--max-lora-rank) for all layers of this model has at most {most}",
            reason="adapter_too_large", param="lora_path", fix="Check that the adapter belongs to this model, or raise --max-lora-rank.",
        )  # fmt: skip
    return read_safetensors_header(path).tensors


def _check_shapes(
    stored: Mapping[str, TensorInfo], factors: Mapping[str, FactorNames], targets: Targets, settings: AdapterSettings
) -> None:
    for module, names in factors.items():
        target, rank = targets.adapted[module], settings.rank_of(module)
        for name, wanted in ((names.down, (rank, target.inputs)), (names.up, (target.outputs, rank))):
            info = stored[name]
            if info.shape != wanted:
                made_for = f"; it was made for {settings.base_model!r}" if settings.base_model else ""
                raise AdapterError(
                    f"tensor {name[:200]} has the shape {list(info.shape)}, {list(wanted)} is expected for rank {rank} and this model{made_for}",
                    reason="adapter_shape", param=name[:200], fix="Use an adapter that was made for this very model.",
                )  # fmt: skip
            if info.dtype not in DENSE_DTYPES:
                raise AdapterError(
                    f"tensor {name[:200]} has the type {info.dtype}; expected one of {', '.join(DENSE_DTYPES)}", reason="adapter_tensor", param=name[:200]
                )


def _read(
    stored: Mapping[str, TensorInfo], factors: Mapping[str, FactorNames], targets: Targets, settings: AdapterSettings, dtype: torch.dtype,
    device: torch.device,
) -> AdapterWeights:  # fmt: skip
    digest = hashlib.sha256(str(dtype).encode())
    factors_of: dict[str, list[tuple[Target, torch.Tensor, torch.Tensor]]] = {}
    with next(iter(stored.values())).file.open("rb") as file:
        # In the order of the model, so that the digest does not depend on that of the file.
        for module, target in targets.adapted.items():
            if (names := factors.get(module)) is None:
                continue
            down, up = (_tensor(file.fileno(), stored[name]) for name in (names.down, names.up))
            down, up = down.to(dtype), (_ordered(up, target, targets) * settings.scaling_of(module)).to(dtype)
            for name, each in ((names.down, down), (names.up, up)):
                if not bool(torch.isfinite(each).all()):
                    raise AdapterError(
                        f"tensor {name[:200]} has numbers that are infinite or none at all in {str(dtype).removeprefix('torch.')}",
                        reason="adapter_not_finite", param=name[:200],
                    )  # fmt: skip
                digest.update(f"{module}\0{tuple(each.shape)}\0".encode())
                digest.update(each.view(torch.uint8).numpy().data)
            factors_of.setdefault(target.module, []).append((target, down, up))
    updates = {module: _stacked(each, targets.widths[module], device) for module, each in factors_of.items()}
    nbytes = sum(update.nbytes for update in updates.values())
    return AdapterWeights(updates, settings.largest_rank, nbytes, digest.digest())


def _stacked(factors: list[tuple[Target, torch.Tensor, torch.Tensor]], width: int, device: torch.device) -> LowRankUpdate:
    """What LowRankUpdate wants of one module of the decoder."""
    down = torch.cat([each for _, each, _ in factors])
    up, first = torch.zeros(width, len(down), dtype=down.dtype), 0
    for target, _, each in factors:
        rank = each.shape[1]
        up[target.begin : target.begin + target.outputs, first : first + rank] = each
        first += rank
    return LowRankUpdate(down.to(device), up.to(device))


def _ordered(up: torch.Tensor, target: Target, targets: Targets) -> torch.Tensor:
    order = row_order(target.transform, target.outputs, targets.config)
    return up if order is None else up[order]


def _tensor(descriptor: int, info: TensorInfo) -> torch.Tensor:
    """float32 [shape]. Read, not mapped: a file that is cut short meanwhile is an error, and not the end of the process."""
    raw = bytearray(info.nbytes)
    if _pread(descriptor, raw, info.offset) != info.nbytes:
        raise AdapterError(f"{info.file.name} was changed while it was read", reason="truncated", param=info.name[:200])
    return torch.frombuffer(raw, dtype=DENSE_DTYPES[info.dtype]).view(info.shape).float()


def _pread(descriptor: int, into: bytearray, offset: int) -> int:
    view, done = memoryview(into), 0
    while done < len(into) and (count := os.preadv(descriptor, [view[done:]], offset + done)):
        done += count
    return done
