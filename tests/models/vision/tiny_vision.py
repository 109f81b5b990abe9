"""A seeded random Idefics3 of two layers each, with its processor and a tokenizer of bytes, written by transformers, which is the oracle."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    PreTrainedTokenizerFast,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.idefics3.processing_idefics3 import Idefics3Processor

from tests.models.tiny_models import randomize

SIDE, LONGEST, PATCH, TILE_ROWS = 32, 96, 8, 4
_MARKS = ("<pad>", "<s>", "</s>", "<image>", "<fake_token_around_image>", "<end_of_utterance>", "<global-img>")
TOKENS = (*_MARKS, *(f"<row_{i}_col_{j}>" for i in range(1, 5) for j in range(1, 5)))
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] | capitalize }}{% if message['content'][0]['type'] == 'image' %}{{ ':' }}{% else %}{{ ': ' }}"
    "{% endif %}{% for line in message['content'] %}{% if line['type'] == 'text' %}{{ line['text'] }}{% elif line['type'] == 'image' %}"
    "{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
_KINDS: dict[str, tuple[Any, Any]] = {
    "idefics3": (Idefics3Config, Idefics3ForConditionalGeneration), "smolvlm": (SmolVLMConfig, SmolVLMForConditionalGeneration),
}  # fmt: skip


@dataclass(frozen=True)
class TinyVision:
    folder: Path
    oracle: Any
    processor: Any

    def inputs(self, text: str, images: Sequence[Image.Image]) -> Any:
        """What transformers makes of a rendered prompt."""
        return self.processor(text=text, images=list(images) or None, return_tensors="pt", add_special_tokens=False)

    def greedy(self, text: str, images: Sequence[Image.Image], count: int) -> list[int]:
        given = self.inputs(text, images)
        with torch.no_grad():
            out = self.oracle.generate(**given, max_new_tokens=count, min_new_tokens=count, do_sample=False)
        return out[0, given["input_ids"].shape[1] :].tolist()

    def logprobs(self, text: str, images: Sequence[Image.Image]) -> torch.Tensor:
        """[T, vocabulary]."""
        with torch.no_grad():
            return self.oracle(**self.inputs(text, images)).logits[0].log_softmax(-1)


@cache
def tiny_vision(root: Path, kind: str = "idefics3", tied: bool = False) -> TinyVision:
    folder = root / f"{kind}-{tied}"
    tokenizer = _tokenizer()
    processor = Idefics3Processor(
        Idefics3ImageProcessorPil(size={"longest_edge": LONGEST}, max_image_size={"longest_edge": SIDE}), tokenizer, image_seq_len=TILE_ROWS,
        chat_template=TEMPLATE,
    )  # fmt: skip
    config_class, model_class = _KINDS[kind]
    config = config_class(
        image_token_id=TOKENS.index("<image>"), scale_factor=2, tie_word_embeddings=tied,
        vision_config={"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": SIDE, "patch_size": PATCH},
        text_config={
            "model_type": "llama", "vocab_size": len(tokenizer), "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": 1,
            "eos_token_id": 2, "tie_word_embeddings": tied,
        },
    )  # fmt: skip
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    randomize(model)
    model.tie_weights()
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return TinyVision(folder, model, processor)


def _tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({token: i for i, token in enumerate([*TOKENS, *alphabet])}, []))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, special=True) for token in TOKENS])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    """Smooth colours with some noise."""
    noise = np.random.default_rng(seed).integers(0, 60, (height, width, 3))
    across, down = np.linspace(0, 150, width)[None, :, None], np.linspace(0, 40, height)[:, None, None]
    return Image.fromarray(((noise + across + down + np.array([0, 7 * seed, 0])) % 256).astype(np.uint8))


def encoded(image: Image.Image, form: str = "PNG", **settings: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **settings)
    return out.getvalue()


def processor_settings(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "processor_config.json").read_text())["image_processor"]
    return found
