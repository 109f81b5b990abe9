"""Encoders with packed matrices, and the encoder of transformers with the same matrices unpacked."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.models.encoders.tiny_encoders import TinyEncoder
from tests.quantization.packers import Case, packed_tensors

# Heads and embeddings stay as they are, as tools leave them.
LEFT = ("embeddings", "classifier", "head.", "rel_embeddings", "pooler", "relative_attention_bias", "wte", "embed_tokens")


def is_matrix(name: str, tensor: torch.Tensor) -> bool:
    return tensor.dim() == 2 and name.endswith(".weight") and not any(part in name for part in LEFT)


def packed_encoder(oracle: TinyEncoder, case: Case, folder: Path) -> TinyEncoder:
    """A copy of the checkpoint in `folder` with packed matrices, and the model with what they mean."""
    stored, meant = packed_tensors(load_file(oracle.folder / "model.safetensors"), case, is_matrix)
    config = json.loads((oracle.folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": case.claim}))
    save_file(stored, folder / "model.safetensors")
    twin = folder / "twin"  # in a file, because transformers has names of its own
    twin.mkdir()
    (twin / "config.json").write_text(json.dumps(config))
    save_file(meant, twin / "model.safetensors", {"format": "pt"})
    return TinyEncoder(folder, type(oracle.model).from_pretrained(twin, dtype=torch.float32).eval())


