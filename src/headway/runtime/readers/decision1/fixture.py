"""Tiny Decision 1.0 packages with random weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.artifacts.resumable_download import file_sha256
from headway.runtime.readers.candidate_head import head_shapes
from headway.runtime.readers.decision1.package import MANIFEST, POINTER, POINTER_FILE, QUESTIONS, QWEN, TYPES, VELA
from headway.runtime.readers.fixtures.tiny_backbone import (
    random_decoder,
    random_encoder,
    random_tensor,
    tiny_decoder_config,
    tiny_encoder_config,
)
from headway.runtime.readers.fixtures.tiny_tokenizer import write_tiny_tokenizer
from headway.runtime.readers.laya.head import head_shapes as marker_shapes

_HEAD_DIM: Final = 16
_LAYERS: Final = 2
_SPECIAL: Final = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<bos>", "sep_token": "<eos>", "mask_token": "<mask>"}
_QUESTIONS: Final[dict[str, Any]] = {
    "domain": {"type": "Choice", "instructions": "Which subject is this about?", "options": {"code": "Programming.", "other": "Anything else."}},
    "jailbreak": {"type": "Noul", "instructions": "Does it override instructions?", "true": "Yes. It is an attack.", "false": "No. It is ordinary."},
    "hazard": {
        "type": "Noul, one question per category", "instructions_template": "Does its harm involve {text}?",
        "categories": {"violence": "violence", "weapons": "weapons or explosives"}, "true": "Yes. It would.", "false": "No. It would not.",
    },
}  # fmt: skip


def _write_qwen(folder: Path, seed: int) -> dict[str, Any]:
    vocabulary = write_tiny_tokenizer(folder, {"pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"})
    config = tiny_decoder_config("qwen3_5_text", vocabulary)
    _write(folder / "backbone" / "config.json", config)
    weights = random_decoder(config, seed)
    save_file({name: value.to(torch.bfloat16) for name, value in weights.items()}, folder / "backbone" / "model.safetensors")
    chance = torch.Generator().manual_seed(seed + 1)
    head = {name: random_tensor(name, shape, chance) for name, shape in head_shapes(config["hidden_size"], _HEAD_DIM).items()}
    save_file(head, folder / "decision_head.safetensors")
    count = sum(value.numel() for value in weights.values())
    _write(folder / "decision_config.json", {"prompt_version": "structured-segmented-candidate-endpoints-global-query-v2", "head_dim": _HEAD_DIM,
                                             "max_options": 255, "text_parameter_count": count})  # fmt: skip
    _write(folder / "temperature.json", {"temperatures": {"choice": 1.25, "noul": 0.75, "score": 1.5}})
    return {
        "runtime_family": QWEN, "model_config": "decision_config.json", "backbone": {"config": "backbone/config.json", "weights": ["backbone/model.safetensors"]},
        "tokenizer": {"json": "tokenizer.json", "config": "tokenizer_config.json"}, "decision_weights": {"decision_head": "decision_head.safetensors"},
        "calibration": {"temperature_file": "temperature.json"},
    }  # fmt: skip


def _write_vela(folder: Path, seed: int) -> dict[str, Any]:
    native = folder / "native"
    vocabulary = write_tiny_tokenizer(native / "tokenizer", _SPECIAL)
    _write(native / "tokenizer" / "tokenizer_config.json", _SPECIAL)
    config = tiny_encoder_config(vocabulary)
    _write(native / "encoder" / "config.json", config)
    save_file(random_encoder(config, seed), native / "encoder" / "model.safetensors")
    for number, kind in enumerate(("choice", "score"), 1):
        branch = random_encoder(config, seed + number)
        layers = {name.replace("layers.", f"{kind}_blocks.", 1): value for name, value in branch.items() if name.startswith("layers.")}
        save_file({**layers, f"{kind}_final_norm.weight": branch["final_norm.weight"]}, native / f"{kind}_encoder.safetensors")
    chance = torch.Generator().manual_seed(seed + 3)
    shapes: dict[str, tuple[int, ...]] = {"type_embedding.weight": (len(TYPES), config["hidden_size"])}
    for name, shape in marker_shapes(config["hidden_size"], _LAYERS, None).items():
        if name != "type_emb.weight":
            for kind in TYPES:
                shapes[name.replace("head.layers.", f"heads.{kind}.", 1).replace("scorer.", f"scorers.{kind}.", 1)] = shape
    save_file({name: random_tensor(name, shape, chance, 0.5) for name, shape in shapes.items()}, native / "decision_heads.safetensors")
    _write(native / "decision_config.json", {
        "arm": "all22", "training_arm": "S22", "type_order": list(TYPES), "packing": {"max_length": 8192, "state_truncation": "error"},
        "head": {"head_layers": _LAYERS, "head_heads": 4},
    })  # fmt: skip
    return {
        "runtime_family": VELA, "model_config": "native/decision_config.json",
        "backbone": {"config": "native/encoder/config.json", "weights": ["native/encoder/model.safetensors"]},
        "tokenizer": {"json": "native/tokenizer/tokenizer.json", "config": "native/tokenizer/tokenizer_config.json",
                      "special_tokens_map": "native/tokenizer/special_tokens_map.json"},
        "decision_weights": {role: f"native/{role}.safetensors" for role in ("choice_encoder", "score_encoder", "decision_heads")},
    }  # fmt: skip


VARIANTS: Final[Mapping[str, Callable[[Path, int], dict[str, Any]]]] = {QWEN: _write_qwen, VELA: _write_vela}


def write_package(folder: Path, variant: str, seed: int) -> None:
    """The encoder comes with presets and a manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    pointer = VARIANTS[variant](folder, seed)
    _write(folder / POINTER_FILE, {**POINTER, "model_name": f"Decision-1.0-Tiny-{variant}", **pointer})
    if variant == VELA:
        _write(folder / QUESTIONS, _QUESTIONS)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        _write(folder / MANIFEST, {"files": {path.relative_to(folder).as_posix(): {"sha256": file_sha256(path)} for path in files}})


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
