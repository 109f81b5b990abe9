"""A tokenizer with one token for each byte, made with the `tokenizers` library and read by the product's own class."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from headway.artifacts.card import ModelCard
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer

EOS = 256
VOCAB = 257


@cache
def byte_tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<eos>", special=True)])
    folder = Path(mkdtemp())
    backend.save(str(folder / "tokenizer.json"))
    card = ModelCard(
        reference=str(folder), path=folder, format="safetensors", architecture="LlamaForCausalLM", model_type="llama",
        config={"vocab_size": VOCAB, "eos_token_id": EOS}, generation_config={}, tensors={}, files=(), missing_files=(), parameters=0,
        weight_bytes=0, dtype_bytes={}, quantization=None, tokenizer="tokenizer.json", chat_template=False, licence=None, context_length=None,
    )  # fmt: skip
    return load_tokenizer(card)


def ids(text: str) -> list[int]:
    return byte_tokenizer().encode(text, add_special_tokens=False)
