"""The two published sizes of Omni: what config.json says of them, and where their parts lie in the checkpoint.

Source: VSR `families/multimodal_embedding/package.py` (7169977) and `processors.py` (4d51146).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from headway.runtime.tasks.readouts import Pooling


@dataclass(frozen=True, slots=True)
class OmniVariant:
    """`config`: what must be as published. `text`, `image`, `speech` and the projections: beginnings of tensor names.
    `unit_image`: the pooled image has length 1 before it is projected. `strip`: white space at the ends of a text goes."""

    config: Mapping[str, Any]
    text_type: Literal["bert", "qwen3"]
    pooling: Pooling
    text: str
    image: str
    speech: str
    image_projection: str
    speech_projection: str
    unit_image: bool
    strip: bool
    prompts: Mapping[str, str] = field(default_factory=dict)


VARIANTS: Final[Mapping[str, OmniVariant]] = {
    "nano": OmniVariant(
        config={
            "format_version": 9, "inference_profile": "single_modality", "text_pooling": "cls", "text_projection": "identity",
            "audio_backend": "tiny_clap_residual_v1", "audio_pooling": "mean", "audio_projection": "linear",
            "residual_audio_readout": "tiny_full_mean_clap_endpoint_zero_linear",
        },
        text_type="bert", pooling="cls", text="text_encoder.encoder.", image="image_encoder.vision_encoder.", speech="audio_encoder.encoder.",
        image_projection="image_encoder.projection.", speech_projection="audio_encoder.projection.", unit_image=False, strip=False,
    ),
    "mini": OmniVariant(
        config={
            "format_version": 7, "text_backend": "qwen3_mrl768", "text_pooling": "last_token_mrl768", "text_projection": "identity",
            "text_instruction_api": "qwen_optional_instruction_v1", "text_prompt": "", "image_pooling": "siglip_attention_l2",
            "audio_backend": "medium_clap_residual_v1", "audio_pooling": "mean", "audio_projection": "identity",
            "residual_audio_readout": "medium_full_mean_clap_endpoint_zero_linear",
        },
        text_type="qwen3", pooling="lasttoken", text="text_model.0.model.", image="image_model.vision_model.", speech="audio_model.",
        image_projection="image_proj.", speech_projection="audio_proj.", unit_image=True, strip=True,
        # The instruction that the text encoder was published with (Qwen3-Embedding).
        prompts={
            "query": "Instruct: Given a search query, retrieve relevant passages that answer the query.\nQuery:", "document": "",
        },
    ),
}  # fmt: skip
