"""A tiny model in a folder as the hub would have it: the published config.json, the published names of tensors."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from tests.models.published_configs import PUBLISHED
from tests.models.published_tensors import AS_PUBLISHED
from tests.models.tiny_models import TinyModel, randomize


@cache
def published_model(name: str, root: Path) -> TinyModel:
    return make_published_model(name, PUBLISHED[name], root)


def make_published_model(name: str, config: dict[str, Any], root: Path) -> TinyModel:
    """transformers reads the config by itself and is the oracle."""
    folder = root / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    known = AutoConfig.from_pretrained(folder)
    attention = "sdpa" if config.get("alibi") else "eager"  # see tiny_models.make_tiny_model
    oracle = AutoModelForCausalLM.from_config(copy.deepcopy(known), dtype=torch.float32, attn_implementation=attention).eval()
    randomize(oracle)
    oracle.save_pretrained(folder / "saved")
    tensors = load_file(folder / "saved" / "model.safetensors")
    for path in (folder / "saved").iterdir():
        path.unlink()
    (folder / "saved").rmdir()
    save_file(AS_PUBLISHED.get(name, lambda tensors, config: tensors)(tensors, known), folder / "model.safetensors")
    return TinyModel(name, folder, oracle)
