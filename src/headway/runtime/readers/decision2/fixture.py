"""Tiny Decision 2.0 packages with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.artifacts.resumable_download import file_sha256
from headway.runtime.loading.manifests import canonical_digest
from headway.runtime.readers.candidate_head import head_shapes
from headway.runtime.readers.decision2.package import (
    ARCHITECTURES,
    CONFIG,
    HEAD,
    LORA,
    MANIFEST,
    POINTER,
    PROMPT,
    SCHEMA,
    identity_files,
)
from headway.runtime.readers.fixtures.tiny_backbone import random_decoder, random_tensor, tiny_decoder_config
from headway.runtime.readers.fixtures.tiny_tokenizer import write_tiny_tokenizer

VARIANTS: Final = ("qwen3", "qwen3.5", "qwen3.5-adapter")
_HEAD_DIM: Final = 16
_RANK: Final = 4
_LIMIT: Final = 8192
_OFFSETS: Final = {"3": [0.25, 0.0, -0.25], "5": [0.1, 0.2, 0.0, -0.15, -0.15]}


def write_package(folder: Path, variant: str, seed: int) -> None:
    """`qwen3.5-adapter` also writes the folder `<folder>-base`, for --base-path."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = write_tiny_tokenizer(folder, {"pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"})
    kind = "qwen3" if variant == "qwen3" else "qwen3_5_text"
    config = tiny_decoder_config(kind, vocabulary)
    weights = random_decoder(config, seed)
    chance = torch.Generator().manual_seed(seed + 1)
    head = {name: random_tensor(name, shape, chance) for name, shape in head_shapes(config["hidden_size"], _HEAD_DIM).items()}
    save_file(head, folder / HEAD)
    decision: dict[str, Any] = {
        "architecture": next(name for name, value in ARCHITECTURES.items() if value == kind), "prompt_version": PROMPT, "head_dim": _HEAD_DIM,
        "max_options": 255, "head_variant": "shared", "checkpoint_format": "full", "text_parameter_count": sum(value.numel() for value in weights.values()),
    }  # fmt: skip
    manifest: dict[str, Any] = {"schema": SCHEMA, "model_name": f"Decision-2.0-Tiny-{variant}", "profile": "qwen-full", "max_input_tokens": _LIMIT,
                                "licence": {"spdx": "apache-2.0", "components": []}}  # fmt: skip
    loaded = sum(value.numel() for value in (*weights.values(), *head.values()))
    base: dict[str, str] = {}
    if variant.endswith("-adapter"):
        base = _write_base(folder.with_name(folder.name + "-base"), config, weights)
        decision |= {"checkpoint_format": LORA, "lora": {**_write_adapter(folder, weights, chance), "source_fingerprint": {"files_sha256": base}}}
        manifest |= {"profile": "qwen-adapter", "base": {"repo_id": "headway/tiny-base", "revision": "0" * 40, "files_sha256": base}}
    else:
        (folder / "backbone").mkdir(exist_ok=True)
        save_file(weights, folder / "backbone" / "model.safetensors")
        _write(folder / "backbone" / "config.json", config)
    manifest["parameters"] = {"loaded": loaded}
    _write(folder / CONFIG, decision)
    _finish(folder, manifest, base)


def _write_base(folder: Path, config: dict[str, Any], weights: dict[str, torch.Tensor]) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    save_file({f"model.language_model.{name}": value for name, value in weights.items()}, folder / "model.safetensors")
    _write(folder / "config.json", {"model_type": "qwen3_5", "text_config": config})
    return {name: file_sha256(folder / name) for name in ("config.json", "model.safetensors")}


def _write_adapter(folder: Path, weights: dict[str, torch.Tensor], chance: torch.Generator) -> dict[str, Any]:
    names = [name.removesuffix(".weight") for name in weights if name.endswith(("q_proj.weight", "in_proj_qkv.weight", "down_proj.weight"))]
    sizes = {name: [weights[f"{name}.weight"].shape[1], weights[f"{name}.weight"].shape[0]] for name in names}
    factors = {}
    for name, (inner, outer) in sizes.items():
        factors[f"base_model.model.{name}.lora_A.weight"] = random_tensor(name, (_RANK, inner), chance)
        factors[f"base_model.model.{name}.lora_B.weight"] = random_tensor(name, (outer, _RANK), chance)
    (folder / "adapter").mkdir(exist_ok=True)
    save_file(factors, folder / "adapter" / "adapter_model.safetensors")
    _write(folder / "adapter" / "adapter_config.json", {"peft_type": "LORA", "r": _RANK, "lora_alpha": 2 * _RANK, "bias": "none", "target_modules": names})
    return {"rank": _RANK, "alpha": 2 * _RANK, "target_modules": names, "target_dimensions": sizes}


def _finish(folder: Path, manifest: dict[str, Any], base: dict[str, str]) -> None:
    """Calibration, offsets, the pointer, and the manifest over all of it."""
    own = {name: file_sha256(folder / name) for name in identity_files(folder)}
    if base:
        own = {**{f"checkpoint/{name}": value for name, value in own.items()}, **{f"source/{name}": value for name, value in base.items()}}
    model = canonical_digest(own)
    _write(folder / "calibration.json", {"calibration_version": "decision2-per-type-temperature/1", "model_sha256": model,
                                         "temperature_by_type": {"choice": 1.5, "noul": 0.8, "score": 1.2}})  # fmt: skip
    _write(folder / "score_bias.json", {"format": "dev2-score-bias-v1", "model_sha256": model, "offsets": _OFFSETS, "fit": {}})
    _write(folder / "config.json", {**POINTER, "model_name": manifest["model_name"]})
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    digests = {name: file_sha256(folder / name) for name in files}
    manifest |= {
        "identity": {"model_sha256": model}, "files_sha256": digests, "calibration": {"file": "calibration.json"},
        "score_bias": {"file": "score_bias.json", "sha256": digests["score_bias.json"], "offsets": _OFFSETS},
    }  # fmt: skip
    _write(folder / MANIFEST, manifest)


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
