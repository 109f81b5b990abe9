"""Tiny packages with random weights, as transformers saves CLIP and SigLIP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.runtime.readers.fixtures.tiny_backbone import random_tensor
from headway.runtime.tasks.fixture_tokenizers import write_tokenizer

VARIANTS: Final = ("clip", "siglip")
_LIMITS: Final = {"clip": 77, "siglip": 64}
_TOKENIZERS: Final[Mapping[str, Any]] = {"clip": ("byte-level", "clip"), "siglip": ("unigram", "siglip")}
_CLASSES: Final = {"clip": ("CLIPConfig", "CLIPModel"), "siglip": ("SiglipConfig", "SiglipModel")}
_SIZES: Final = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_PROCESSORS: Final[Mapping[str, Mapping[str, Any]]] = {
    "clip": {
        "image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": 32}, "resample": 3, "do_center_crop": True,
        "crop_size": {"height": 32, "width": 32}, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "do_convert_rgb": True,
        "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
    },
    "siglip": {
        "image_processor_type": "SiglipImageProcessor", "do_resize": True, "size": {"height": 32, "width": 32}, "resample": 2, "do_rescale": True,
        "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    },
}  # fmt: skip


def write_multimodal_package(folder: Path, variant: str, seed: int) -> None:
    """A few hundred kB. Raises KeyError for an unknown variant."""
    import transformers

    kind, style = _TOKENIZERS[variant]
    tokens = write_tokenizer(folder, kind, style, _LIMITS[variant], token_types=False)
    text = {**_SIZES, "vocab_size": tokens["vocab_size"], "max_position_embeddings": _LIMITS[variant], "projection_size": 32,
            **{name: tokens.get(name, 0) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}}  # fmt: skip
    vision = {**_SIZES, "image_size": 32, "patch_size": 8}
    config_class, model_class = _CLASSES[variant]
    config = getattr(transformers, config_class)(text_config=text, vision_config=vision, projection_dim=24)
    config.architectures = [model_class]
    config.save_pretrained(folder)
    with torch.device("meta"):
        model = getattr(transformers, model_class)(config)
    save_file(random_weights(model.state_dict(), seed), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "preprocessor_config.json").write_text(json.dumps(_PROCESSORS[variant], indent=2) + "\n", encoding="utf-8")


def random_weights(shapes: Mapping[str, torch.Tensor], seed: int) -> dict[str, torch.Tensor]:
    """Large for words and pixels and small for what all inputs share, so that vectors differ clearly."""
    chance = torch.Generator().manual_seed(seed)
    return {name: random_tensor(name, tuple(value.shape), chance, _scale(name)) for name, value in shapes.items() if value.is_floating_point()}


def _scale(name: str) -> float:
    if "token_embedding" in name or "patch_embedding" in name:
        return 1.0
    if "attn" in name and name.endswith("weight"):
        return 0.6
    return 0.02 if name.endswith("bias") else 0.2
