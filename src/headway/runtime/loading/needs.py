"""Which capabilities of a device a package needs beyond what its family says: those of its weight format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headway.artifacts.safetensors_header import read_safetensors_header
from headway.runtime.family import ModelSpec
from headway.runtime.package import Package

_FP8_DTYPES: Final = ("F8_E4M3", "F8_E5M2")
_FP4_DTYPES: Final = ("F4",)


def needed_capabilities(package: Package, spec: ModelSpec) -> Sequence[str]:
    """Those of the family, and `fp8` or `nvfp4` for weights that are stored so: as the family found out, else as headers say."""
    if spec.stored.title is not None:
        return tuple(dict.fromkeys((*spec.capabilities, *spec.stored.needs)))
    claim = package.config.get("quantization_config") or {}
    found = list(spec.capabilities)
    method, algorithm = _words(claim, "quant_method"), f"{_words(claim, 'quant_algo')} {_words(claim, 'format')}"
    dtypes = _stored_dtypes(package, spec)
    if "nvfp4" in f"{method} {algorithm}" or dtypes & set(_FP4_DTYPES):
        found.append("nvfp4")
    elif method in ("fp8", "fbgemm_fp8") or "fp8" in algorithm or dtypes & set(_FP8_DTYPES):
        found.append("fp8")
    return tuple(dict.fromkeys(found))


def _words(claim: Any, key: str) -> str:
    return str(claim.get(key, "")).lower() if isinstance(claim, dict) else ""


def _stored_dtypes(package: Package, spec: ModelSpec) -> set[str]:
    root = package.path if package.is_folder else package.path.parent
    weights = [root / name for name in spec.files if name.endswith(".safetensors")]
    return {tensor.dtype for path in weights for tensor in read_safetensors_header(path).tensors.values()}
