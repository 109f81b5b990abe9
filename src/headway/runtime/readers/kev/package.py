"""The two forms of a Kev package: a low-rank adapter for a base model that lies elsewhere, or a whole backbone.

The head is `head.pt`, a pickle that is read as nothing but numbers and tensors, or `head.safetensors`.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from headway.artifacts.bounded_json import read_json_object
from headway.errors import PackageError
from headway.runtime.package import Package
from headway.runtime.readers.kev.head import PointerHead, head_shapes
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.transformers_backbone import LowRank
from headway.runtime.readers.unpublished import not_of_the_format

ADAPTER: Final = "adapter_config.json"
ADAPTER_WEIGHTS: Final = "adapter_model.safetensors"
TRAINING: Final = "training_config.json"
PICKLED_HEAD: Final = "head.pt"
HEAD: Final = "head.safetensors"
ARCHITECTURE: Final = "KevModel"
_MOST_HEAD_BYTES: Final = 64 << 20  # 2 x 256 x 8192 float32 are 16 MiB
_FACTOR: Final = ".lora_"


@dataclass(frozen=True, slots=True)
class KevHead:
    """`base` and `base_revision` name what an adapter was trained on, where the file says so."""

    pointer: PointerHead
    temperature: float
    base: str | None = None
    base_revision: str | None = None


def is_kev(package: Package) -> bool:
    """Kev's training code writes `training_config.json` beside the adapter; `head.pt` alone could be anybody's."""
    if package.has(PICKLED_HEAD):
        training = package.json(TRAINING)
        arguments = training.get("args") if training is not None else None
        return isinstance(arguments, dict) and "head_dim" in arguments
    architectures = package.config.get("architectures")
    return package.has(HEAD) and isinstance(architectures, list) and ARCHITECTURE in architectures


def is_adapter(package: Package) -> bool:
    return package.has(ADAPTER)


def head_file(package: Package) -> str:
    return PICKLED_HEAD if package.has(PICKLED_HEAD) else HEAD


def read_head(package: Package, hidden: int) -> KevHead:
    """Raises ArtifactError: `invalid_package`, `unsupported_layout`, `tensor_shape`, ..."""
    if package.has(PICKLED_HEAD):
        return _pickled_head(package.path / PICKLED_HEAD, hidden)
    stored = PackageTensors(package.path, [HEAD])
    size = stored.shapes().get("q.bias", (0,))[0]
    stored.check(head_shapes(hidden, size))
    return KevHead(PointerHead(stored.read(torch.float32)), _temperature(HEAD, package.config.get("temperature", 1.0)))


def _pickled_head(path: Path, hidden: int) -> KevHead:
    if path.stat().st_size > _MOST_HEAD_BYTES:
        raise not_of_the_format(path.name, f"at most {_MOST_HEAD_BYTES} bytes", path.stat().st_size)
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError, KeyError) as error:
        raise PackageError(
            f"{path.name} holds more than tensors and plain values, or is damaged, and is not loaded: {str(error).splitlines()[0][:200]}",
            reason="unsafe_pickle", param=path.name, fix="Have the head converted to head.safetensors.",
        ) from None  # fmt: skip
    tensors = found.get("head") if isinstance(found, dict) else None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise not_of_the_format(path.name, "tensors under head", type(tensors).__name__)
    if found.get("option_isolation"):
        raise PackageError(
            f"{path.name} was trained with options that do not see each other, which needs masks within a row; that is not served",
            reason="unsupported_layout", param="option_isolation", fix="Use a package with options in sequence.",
        )  # fmt: skip
    wanted = head_shapes(hidden, int(tensors["q.bias"].shape[0]) if "q.bias" in tensors and tensors["q.bias"].ndim == 1 else 0)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if shapes != wanted:
        raise not_of_the_format(path.name, f"tensors of the shapes {wanted}", shapes)
    head = PointerHead({name: tensor.float().contiguous() for name, tensor in tensors.items()})
    base, revision = found.get("base"), found.get("base_revision")
    return KevHead(
        head, _temperature(path.name, found.get("temperature", 1.0)), base if isinstance(base, str) else None,
        revision if isinstance(revision, str) else None,
    )  # fmt: skip


def _temperature(file: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise not_of_the_format(file, "a temperature above 0", value)
    return float(value)


def read_low_rank(folder: Path) -> LowRank:
    """The adapter. Raises ArtifactError: `invalid_package`, `unsupported_layout`."""
    settings = read_json_object(folder / ADAPTER)
    rank, alpha = settings.get("r"), settings.get("lora_alpha")
    if settings.get("peft_type") != "LORA" or type(rank) is not int or rank < 1 or not isinstance(alpha, int | float):
        raise not_of_the_format(ADAPTER, "a LoRA adapter with r and lora_alpha", {key: settings.get(key) for key in ("peft_type", "r", "lora_alpha")})
    odd = [key for key in _ODD if settings.get(key)] + (["bias"] if settings.get("bias", "none") != "none" else [])
    if odd:
        raise PackageError(f"{ADAPTER} uses {', '.join(odd)}; plain low-rank adapters are served", reason="unsupported_layout", param=odd[0],
                           fix="Merge the adapter into its base model.")  # fmt: skip
    return LowRank(_factors(PackageTensors(folder, [ADAPTER_WEIGHTS]).read(torch.float32), rank), alpha / rank)


_ODD: Final = (
    "use_dora", "use_rslora", "lora_bias", "rank_pattern", "alpha_pattern", "modules_to_save", "fan_in_fan_out", "trainable_token_indices",
)  # fmt: skip


def _factors(tensors: Mapping[str, torch.Tensor], rank: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """By the module's name from "layers." on, whatever wrapping the names have before it."""
    halves: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        module, _, half = name[max(name.find("layers."), 0) :].partition(_FACTOR)
        halves.setdefault(module, {})[half] = tensor
    for module, found in halves.items():
        fits = set(found) == {"A.weight", "B.weight"} and found["A.weight"].shape[0] == rank == found["B.weight"].shape[1]
        if not (module.startswith("layers.") and fits):
            raise not_of_the_format(ADAPTER_WEIGHTS, f"two factors of rank {rank} for each module of a layer", module)
    return {module: (found["A.weight"], found["B.weight"]) for module, found in halves.items()}
