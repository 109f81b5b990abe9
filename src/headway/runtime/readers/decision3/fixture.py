"""Tiny Decision 3.0 packages with random weights."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.artifacts.resumable_download import file_sha256
from headway.artifacts.tokenizer import tokenizer_at
from headway.runtime.loading.manifests import canonical_digest
from headway.runtime.readers.decision3.package import (
    CODES,
    CONFIG,
    FORMAT,
    IDENTITY_FIELDS,
    IDENTITY_FILES,
    MANIFEST,
    READOUT,
    SCHEMA,
    TEMPLATE,
)
from headway.runtime.readers.fixtures.tiny_backbone import random_decoder, random_tensor, tiny_decoder_config
from headway.runtime.readers.fixtures.tiny_tokenizer import write_tiny_tokenizer

VARIANTS: Final = ("noncausal", "causal")
_CHAT: Final = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}"
    "{%- if enable_thinking is defined and not enable_thinking %}{{ '\n</think>\n\n' }}{% endif %}{% endif %}"
)


def write_package(folder: Path, variant: str, seed: int) -> None:
    """`noncausal`: layers of full attention see the whole prompt, as in the published models. A small vision tensor is there
    too, since the published models have a tower; nothing reads it."""
    special = {"pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
    vocabulary = write_tiny_tokenizer(folder, special, ("<|im_start|>", "<think>", "</think>"), CODES + 26)
    config = tiny_decoder_config("qwen3_5_text", vocabulary)
    weights = random_decoder(config, seed)
    chance = torch.Generator().manual_seed(seed + 1)
    tower = {"visual.patch_embed.proj.weight": random_tensor("proj", (8, 3), chance)}
    save_file({**{f"language_model.{name}": value for name, value in weights.items()}, **tower}, folder / "model.safetensors")
    save_file({"weight": random_tensor("readout", (CODES, config["hidden_size"]), chance)}, folder / READOUT)
    (folder / TEMPLATE).write_text(_CHAT, encoding="utf-8")
    codes, ids = _codes(folder)
    decision = {
        "format_version": 1, "format_id": FORMAT, "prompt": "d3", "codes": codes, "token_ids": ids, "temperature": 1.3, "pooling": "last",
        "attention_mode": "noncausal_full_attention" if variant == "noncausal" else "causal", "max_length": 8192, "readout_dtype": "float32",
    }  # fmt: skip
    _write(folder / CONFIG, decision)
    _write(folder / "config.json", {"model_type": "qwen3_5", "architectures": ["Qwen3_5Model"], "text_config": config})
    text, vision, readout = (sum(value.numel() for value in group.values()) for group in (weights, tower, {"": torch.empty(CODES, config["hidden_size"])}))
    digests = {path.name: file_sha256(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST}
    identity = {"files": {name: digests[name] for name in ("model.safetensors", *IDENTITY_FILES)},
                "decision": {key: decision[key] for key in IDENTITY_FIELDS if key in decision}}  # fmt: skip
    _write(folder / MANIFEST, {
        "schema": SCHEMA, "model_name": f"d3-tiny-{variant}", "licence": {"spdx": "apache-2.0"}, "identity": {"model_sha256": canonical_digest(identity)},
        "parameters": {"text": text, "vision": vision, "readout": readout, "loaded": text + vision + readout},
        "files_sha256": digests, "files_bytes": {name: (folder / name).stat().st_size for name in digests},
    })  # fmt: skip


def _codes(folder: Path) -> tuple[list[str], list[int]]:
    """The first 255 of A .. Z, AA .. that are one token each."""
    tokenizer = tokenizer_at(folder)
    codes: list[str] = []
    ids: list[int] = []
    for code in (*ascii_uppercase, *map("".join, product(ascii_uppercase, repeat=2))):
        found = tokenizer.encode(code, add_special_tokens=False)
        if len(found) == 1 and len(codes) < CODES:
            codes.append(code)
            ids += found
    return codes, ids


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
