"""Tiny Omni packages with random weights, in the published layout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.runtime.multimodal.fixtures import random_weights
from headway.runtime.multimodal.omni_package import CLAP, IMAGE, SPEECH, TEXT, WEIGHTS
from headway.runtime.multimodal.omni_variants import VARIANTS, OmniVariant
from headway.runtime.readers.fixtures.tiny_backbone import tiny_decoder_config
from headway.runtime.tasks.fixture_tokenizers import write_tokenizer

OMNI_VARIANTS: Final = tuple(f"omni-{name}" for name in VARIANTS)
_WIDTH: Final = {"nano": 32, "mini": 24}
_SIZES: Final = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_VISION: Final = {**_SIZES, "image_size": 32, "patch_size": 8}
_SPEECH: Final = {
    "d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 24, "num_mel_bins": 80, "max_source_positions": 1500,
}  # fmt: skip
_CLAP: Final = {
    "patch_embeds_hidden_size": 8, "depths": [1, 1], "num_attention_heads": [2, 2], "hidden_size": 16, "projection_dim": 12, "enable_fusion": False,
}  # fmt: skip
_PROCESSORS: Final[Mapping[str, Mapping[str, Any]]] = {
    IMAGE: {"size": {"height": 32, "width": 32}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3},
    SPEECH: {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400,
             "chunk_length": 30, "nb_max_frames": 3000, "n_samples": 480000},
    CLAP: {"feature_extractor_type": "ClapFeatureExtractor", "feature_size": 64, "sampling_rate": 48000, "hop_length": 480, "fft_window_size": 1024,
           "max_length_s": 10, "frequency_min": 50, "frequency_max": 14000, "truncation": "rand_trunc", "padding": "repeatpad"},
}  # fmt: skip
_RESAMPLE: Final = {"nano": 3, "mini": 2}


def write_omni_package(folder: Path, variant: str, seed: int) -> None:
    """A few hundred kB. Raises KeyError for an unknown variant."""
    name = variant.removeprefix("omni-")
    chosen = VARIANTS[name]
    kind, style = ("wordpiece", "bert") if chosen.text_type == "bert" else ("byte-level", "qwen")
    tokens = write_tokenizer(folder / TEXT, kind, style, 512, token_types=False)  # type: ignore[arg-type]
    text = tiny_decoder_config("qwen3", tokens["vocab_size"]) if chosen.text_type == "qwen3" else {
        "model_type": "bert", "architectures": ["BertModel"], **_SIZES, "vocab_size": tokens["vocab_size"], "max_position_embeddings": 512,
    }  # fmt: skip
    _write_json(folder / "config.json", {
        "architectures": ["VelaOmni"], "variant": name, **chosen.config, "embedding_dim": _WIDTH[name], "max_text_length": 512,
    })  # fmt: skip
    configs = {
        TEXT: text, IMAGE: {"model_type": "siglip", "vision_config": _VISION}, SPEECH: {"model_type": "whisper", **_SPEECH},
        CLAP: {"model_type": "clap", "audio_config": {"model_type": "clap_audio_model", **_CLAP}},
    }  # fmt: skip
    for part, config in configs.items():
        _write_json(folder / part / "config.json", config)
    for part, processor in _PROCESSORS.items():
        _write_json(folder / part / "preprocessor_config.json", {**processor, **({"resample": _RESAMPLE[name]} if part == IMAGE else {})})
    weights = random_weights({**_towers(chosen, text), **_readouts(chosen, _WIDTH[name])}, seed)
    for each in list(weights):  # variances, and what is divided by
        if each.endswith(("running_var", "residual.scale")):
            weights[each] = weights[each].abs() + 0.5
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def _towers(chosen: OmniVariant, text: dict[str, Any]) -> dict[str, torch.Tensor]:
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    with torch.device("meta"):
        text_model = transformers.AutoModel.from_config(transformers.CONFIG_MAPPING[text["model_type"]].from_dict(text), attn_implementation="eager")
        parts = {
            chosen.text: text_model,
            chosen.image: transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**_VISION)),
            chosen.speech: WhisperEncoder(transformers.WhisperConfig(**_SPEECH)),
            "audio_residual.clap.audio_model.": transformers.ClapAudioModel(transformers.ClapAudioConfig(**_CLAP)),
        }  # fmt: skip
    return {prefix + name: value for prefix, model in parts.items() for name, value in model.state_dict().items()}


def _readouts(chosen: OmniVariant, width: int) -> dict[str, torch.Tensor]:
    clap, heard = int(_CLAP["projection_dim"]), int(_CLAP["hidden_size"])  # type: ignore[call-overload]
    linears = {
        chosen.image_projection: (width, 32), chosen.speech_projection: (width, 16),
        "audio_residual.clap.audio_projection.linear1.": (clap, heard), "audio_residual.clap.audio_projection.linear2.": (clap, clap),
    }  # fmt: skip
    found = {f"{prefix}weight": torch.empty(shape) for prefix, shape in linears.items()}
    found |= {f"{prefix}bias": torch.empty(shape[0]) for prefix, shape in linears.items()}
    return found | {"audio_residual.weight": torch.empty(width, clap), "audio_residual.mean": torch.empty(clap), "audio_residual.scale": torch.empty(clap)}


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
