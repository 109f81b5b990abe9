"""Tiny Kev packages with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.runtime.readers.fixtures.tiny_backbone import random_decoder, tiny_decoder_config
from headway.runtime.readers.fixtures.tiny_tokenizer import write_tiny_tokenizer
from headway.runtime.readers.kev.head import head_shapes
from headway.runtime.readers.kev.prompt import DELIMITERS

# Form of the package; `adapter` has its base model in the folder `base` beside it.
VARIANTS: Final = ("converted", "full", "adapter")
_KINDS: Final = {"converted": "qwen3", "full": "qwen3_5_text", "adapter": "qwen3"}
_HEAD_DIM: Final = 16
_TEMPERATURE: Final = 1.25
_RANK: Final = 4
_ALPHA: Final = 8
_ADAPTED: Final = ("self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj")


def write_kev(folder: Path, variant: str, seed: int) -> None:
    backbone = folder / "base" if variant == "adapter" else folder
    tokens = write_tiny_tokenizer(backbone, {"pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"}, DELIMITERS)
    config = tiny_decoder_config(_KINDS[variant], tokens)
    weights = random_decoder(config, seed)
    if variant == "converted":
        config |= {"architectures": ["KevModel"], "temperature": _TEMPERATURE}
        weights = {f"model.{name}": tensor for name, tensor in weights.items()}
    _write_json(backbone / "config.json", config)
    save_file(weights, backbone / "model.safetensors")
    chance = torch.Generator().manual_seed(seed + 1)
    head = {name: torch.randn(shape, generator=chance) * 0.2 for name, shape in head_shapes(config["hidden_size"], _HEAD_DIM).items()}
    if variant == "converted":
        save_file(head, folder / "head.safetensors")
        return
    torch.save({"head": head, "head_dim": _HEAD_DIM, "temperature": _TEMPERATURE, "base": "fixture", "option_isolation": False}, folder / "head.pt")
    _write_json(folder / "training_config.json", {"args": {"head_dim": _HEAD_DIM}, "base_revision": "0" * 40})
    if variant == "adapter":
        _write_adapter(folder, weights, chance)


def _write_adapter(folder: Path, base: dict[str, torch.Tensor], chance: torch.Generator) -> None:
    factors = {}
    for name, weight in base.items():
        module = name.removesuffix(".weight")
        if module.endswith(_ADAPTED):
            stem = f"base_model.model.{module}.lora_"
            factors[f"{stem}A.weight"] = torch.randn(_RANK, weight.shape[1], generator=chance) * 0.2
            factors[f"{stem}B.weight"] = torch.randn(weight.shape[0], _RANK, generator=chance) * 0.2
    save_file(factors, folder / "adapter_model.safetensors")
    settings = {
        "peft_type": "LORA", "r": _RANK, "lora_alpha": _ALPHA, "bias": "none", "base_model_name_or_path": "fixture",
        "target_modules": sorted({module.rsplit(".", 1)[-1] for module in _ADAPTED}),
    }  # fmt: skip
    _write_json(folder / "adapter_config.json", settings)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")
