"""Tensors of a package's safetensors files, with names and shapes checked before anything is read."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import torch

from headway.artifacts.card import TensorInfo
from headway.artifacts.safetensors_header import read_safetensors_header
from headway.errors import PackageError
from headway.quantization.claim_fields import Claim
from headway.quantization.logical_card import logical_tensors
from headway.quantization.weight_reader import WeightReader

_SHOWN: Final = 5
_FIX: Final = "Download the package again, or check that its configuration belongs to these weights."


class PackageTensors:
    """The tensors of some files of a package, by name. Headers only; `read` brings the numbers.

    `claim` is the quantization section of the configuration that belongs to the files: packed weights are then there as a model sees
    them, and are unpacked when they are read. Raises what `logical_tensors` raises.
    """

    def __init__(self, folder: Path, names: Iterable[str], claim: Claim | None = None):
        self._folder = folder
        self.files = tuple(sorted(names))
        self.source = ", ".join(self.files)
        stored: dict[str, TensorInfo] = {}
        for name in self.files:
            for tensor, info in read_safetensors_header(folder / name).tensors.items():
                if tensor in stored:
                    raise PackageError(f"{folder} holds the tensor {tensor} twice", reason="duplicate_tensor", param=tensor, fix=_FIX)
                stored[tensor] = info
        self.infos: Mapping[str, TensorInfo] = logical_tensors(stored, claim, f"{folder} ({self.source})")

    def part(self, names: Sequence[str]) -> PackageTensors:
        """Those that lie in some of the files."""
        found = copy.copy(self)
        found.files, found.source = tuple(names), ", ".join(names)
        paths = {self._folder / name for name in names}
        found.infos = {name: info for name, info in self.infos.items() if info.file in paths}
        return found

    @property
    def parameters(self) -> int:
        """Numbers in all tensors."""
        return sum(info.elements for info in self.infos.values())

    def shapes(self, prefix: str = "") -> dict[str, tuple[int, ...]]:
        """Shapes of the tensors whose names begin with `prefix`, by the rest of the name."""
        return {name.removeprefix(prefix): info.shape for name, info in self.infos.items() if name.startswith(prefix)}

    def check(self, wanted: Mapping[str, tuple[int, ...]], prefix: str = "", ignore: Callable[[str], bool] = lambda _: False) -> None:
        """`wanted` without the prefix. Raises PackageError: `missing_tensor`, `tensor_shape`, `unexpected_tensor`."""
        there = self.shapes(prefix)
        if missing := sorted(set(wanted) - set(there)):
            raise PackageError(
                f"{self.source} lack(s) {len(missing)} tensors: {_some(prefix, missing)}", reason="missing_tensor", param=prefix + missing[0], fix=_FIX,
            )  # fmt: skip
        for name, shape in wanted.items():
            if there[name] != tuple(shape):
                raise PackageError(
                    f"{self.source}: tensor {prefix}{name} has shape {list(there[name])}, the configuration says {list(shape)}",
                    reason="tensor_shape", param=prefix + name, fix=_FIX,
                )  # fmt: skip
        if extra := sorted(name for name in set(there) - set(wanted) if not ignore(name)):
            raise PackageError(
                f"{self.source} has {len(extra)} tensors with no place in the model: {_some(prefix, extra)}", reason="unexpected_tensor",
                param=prefix + extra[0], fix=_FIX,
            )  # fmt: skip

    def read(self, dtype: torch.dtype, prefix: str = "", names: Iterable[str] | None = None) -> dict[str, torch.Tensor]:
        """Copies of the tensors below `prefix`, or of those `names` (without the prefix), in `dtype`."""
        wanted = list(self.shapes(prefix)) if names is None else list(names)
        with WeightReader(self.infos) as reader:
            return {name: reader.tensor(prefix + name, dtype) for name in wanted}


def _some(prefix: str, names: list[str]) -> str:
    return ", ".join(prefix + name for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
