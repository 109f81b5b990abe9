"""Encoders with packed matrices, and the encoder of transformers with the same matrices unpacked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tests.models.encoders.tiny_encoders import TinyEncoder
from tests.quantization.packers import Case

# Heads and embeddings stay as they are, as tools leave them.
LEFT = ("embeddings", "classifier", "head.", "rel_embeddings", "pooler", "relative_attention_bias", "wte", "embed_tokens")


def is_matrix(name: str, tensor: torch.Tensor) -> bool:
    return tensor.dim() == 2 and name.endswith(".weight") and not any(part in name for part in LEFT)


def packed_folder(source: Path, case: Case, folder: Path, which: Callable[[str, torch.Tensor], bool] = is_matrix) -> dict[str, torch.Tensor]:
    """A copy of the checkpoint `source` with its matrices made of random numbers packed as `case` says; what they mean, with all others."""
    rng = np.random.default_rng(5)
    plain = load_file(source / "model.safetensors")
    stored = dict(plain)
    for name in [name for name, tensor in plain.items() if which(name, tensor)]:
        parts, weight = case.pack(rng, *plain[name].shape)
        del stored[name]
        stored |= {f"{name.removesuffix('.weight')}.{ending}": tensor.contiguous() for ending, tensor in parts.items()}
        plain[name] = torch.from_numpy(np.ascontiguousarray(weight)).float()
    assert len(stored) > len(plain), "nothing is packed"
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((source / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": case.claim}))
    save_file(stored, folder / "model.safetensors")
    return plain


def packed_encoder(oracle: TinyEncoder, case: Case, folder: Path) -> TinyEncoder:
    plain = packed_folder(oracle.folder, case, folder)
    twin = folder / "twin"  # in a file, because transformers has names of its own
    twin.mkdir()
    (twin / "config.json").write_text((oracle.folder / "config.json").read_text())
    save_file(plain, twin / "model.safetensors", {"format": "pt"})
    return TinyEncoder(folder, type(oracle.model).from_pretrained(twin, dtype=torch.float32).eval())


