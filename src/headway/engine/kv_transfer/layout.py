"""Layout: what two engines must have in common before the blocks of one mean anything to the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from headway.artifacts.card import ModelCard
from headway.artifacts.remembered_digests import remembered_sha256
from headway.engine.config import EngineConfig
from headway.kernels.paged_kv import PagedKV
from headway.models.prepared.folder import prepared_folder

Layout = Mapping[str, str | int]
_IMAGES: Final = 1  # raise it when BlockImages changes the order of its bytes


def layout_of(config: EngineConfig, card: ModelCard, dtype: str, kv: PagedKV, image_bytes: int) -> Layout:
    """`dtype`: of the computation. Reads the weight files once, for their digest, which is remembered. Raises OSError."""
    return {
        "model": model_digest(config, card),
        "dtype": dtype,
        "kv_dtype": str(kv.dtype).removeprefix("torch."),
        "block_size": kv.block_size,
        "layers": kv.shape.num_layers,
        "kv_heads": kv.shape.num_kv_heads,
        "head_dim": kv.shape.head_dim,
        "tensor_parallel": 1,
        "image": _IMAGES,
        "image_bytes": image_bytes,
    }


def model_digest(config: EngineConfig, card: ModelCard) -> str:
    """16 hex digits that follow from weights, configuration, and what is done to weights at loading."""
    notes = prepared_folder() / "digests"
    identity: dict[str, Any] = {
        "files": [remembered_sha256(file, notes) for file in sorted(card.files)],
        "config": {name: value for name, value in card.config.items() if name not in ("_name_or_path", "transformers_version")},
        "quantization": config.quantization,
        "load_format": config.load_format == "dummy",
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:16]


def differences(ours: Layout, theirs: Mapping[str, Any]) -> list[str]:
    """In words, field by field; empty when they agree."""
    return [
        f"{name} is {value} here and {str(theirs.get(name))[:40]} there"
        for name, value in ours.items()
        if type(theirs.get(name)) is not type(value) or theirs[name] != value
    ]
