"""Small tokenizers of every kind, trained here and saved as model folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from headway.artifacts.card import ModelCard

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "def add(a, b):\n    return a + b  # 12345 + 67890\n\n\tprint(add(1, 2))",
    "Straße, café, naïve, übermäßig; Ω ≈ ç √ ∫, и русский текст тоже.",
    "中文字符和日本語のテキスト。中文字符。",
    "It's 3.14, isn't it? We'll see: they've done 100% of it!",
    "aaa aaaa ababab abab lalala over and over and over again",
] * 3
TEXTS = [
    "", " ", "  two  spaces  ", "Hello world", "The dog's 2 dogs", "1234567890 12,345.67", "x = [1, 2]\n\n\tif x:\n        y()",
    "中文 text и русский", "🙂 👩‍👧 e\u0301 \u200b\ufeff", "a<|im_start|>user\nhi<|im_end|>\n", "<s>one</s> two <s>", "[CLS] x [SEP]", "\n\n\n",
    "ABABab", "naïve café Straße", "half ½ ² Ⅷ １２", "\x00\x01\x7f", "ends with space ", "\r\nline\r\n", "<0x41>", "'Ll 'RE don'T",
]  # fmt: skip


def _train(model: Any, trainer: Any, **parts: Any) -> Backend:
    backend = Backend(model)
    for name, part in parts.items():
        setattr(backend, name, part)
    backend.train_from_iterator(CORPUS, trainer)
    return backend


def byte_level() -> Backend:
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    split = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return _train(models.BPE(), trainer, pre_tokenizer=split, decoder=decoders.ByteLevel(),
                  post_processor=processors.ByteLevel(trim_offsets=False))  # fmt: skip


def byte_level_bos() -> Backend:
    backend = byte_level()
    backend.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", pair="<|endoftext|> $A <|endoftext|> $B", special_tokens=[("<|endoftext|>", 0)]
    )
    return backend


def llama() -> Backend:
    """SentencePiece style: a normalizer puts the word start in front, bytes stand for unknown characters."""
    vocab, merges = sentencepiece_vocabulary()
    backend = Backend(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in ("<unk>", "<s>", "</s>")])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", vocab["<s>"])]
    )
    return backend


def llama_metaspace() -> Backend:
    """As `llama`, with the word start put in by a pre-tokenizer, at the start of the text only."""
    backend = llama()
    backend.normalizer = normalizers.Sequence([])
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return backend


def gemma() -> Backend:
    """As `llama` without a leading space."""
    backend = llama()
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return backend


def late_marks() -> Backend:
    """As `llama`, single characters and bytes only, with a decoder that joins bytes before it replaces word starts."""
    vocab, _ = sentencepiece_vocabulary()
    backend = Backend(models.BPE(vocab, [], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Replace("▁", " "), decoders.Fuse()])
    return backend


@cache
def sentencepiece_vocabulary() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Tokens in the order of a SentencePiece BPE model: specials, bytes, merged pieces best first, single characters."""
    trainer = trainers.BpeTrainer(vocab_size=160, show_progress=False)
    trained = _train(models.BPE(), trainer, pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="always"))
    state = json.loads(trained.to_str())["model"]
    merges = [(left, right) for left, right in state["merges"]]
    pieces = [left + right for left, right in merges] + [token for token in state["vocab"] if len(token) == 1]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}, merges


def unigram() -> Backend:
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False)
    backend = _train(models.Unigram(), trainer, normalizer=normalizers.NFKC(), pre_tokenizer=pre_tokenizers.Metaspace(),
                     decoder=decoders.Metaspace())  # fmt: skip
    end = backend.token_to_id("</s>")
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", end)])
    return backend


def wordpiece() -> Backend:
    trainer = trainers.WordPieceTrainer(
        vocab_size=250, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False
    )
    backend = _train(models.WordPiece(unk_token="[UNK]"), trainer, normalizer=normalizers.BertNormalizer(),
                     pre_tokenizer=pre_tokenizers.BertPreTokenizer(), decoder=decoders.WordPiece())  # fmt: skip
    ids = [(token, backend.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids)
    return backend


def suffix_bpe() -> Backend:
    """The end of a word is marked, as in the first BPE models."""
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False)
    return _train(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), trainer,
                  pre_tokenizer=pre_tokenizers.Whitespace(), decoder=decoders.BPEDecoder())  # fmt: skip


def word_level() -> Backend:
    """Words without any decoder: they are joined by blanks."""
    trainer = trainers.WordLevelTrainer(vocab_size=120, special_tokens=["<unk>", "<a>", "<b>"], show_progress=False)
    return _train(models.WordLevel(unk_token="<unk>"), trainer, pre_tokenizer=pre_tokenizers.Whitespace())


ALL = (byte_level, byte_level_bos, llama, llama_metaspace, gemma, unigram, wordpiece, suffix_bpe, word_level, late_marks)
MADE: dict[str, Callable[[], Backend]] = {made.__name__: made for made in ALL}
KINDS = tuple(kind for kind in MADE if kind != "late_marks")  # as they occur; the last one is a stress test
EXACT = ("byte_level", "byte_level_bos", "llama", "llama_metaspace", "gemma", "unigram")
# Special tokens as tokenizer_config.json names them.
NAMED: dict[str, dict[str, Any]] = {
    "byte_level": {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "unk_token": "<|endoftext|>"},
    "byte_level_bos": {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"},
    "unigram": {"eos_token": "</s>", "unk_token": "<unk>"},
    "wordpiece": {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]"},
    "suffix_bpe": {"unk_token": "<unk>"},
    "word_level": {"unk_token": "<unk>"},
} | {kind: {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"} for kind in ("llama", "llama_metaspace", "gemma", "late_marks")}


@cache
def trained(kind: str) -> str:
    """The serialized tokenizer, trained once for all tests."""
    return str(MADE[kind]().to_str())


def save(kind: str, folder: Path, config: dict[str, Any] | None = None, **tokenizer_config: Any) -> ModelCard:
    """Write a model folder without weights and return its card."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(trained(kind))
    stated = {"tokenizer_class": "PreTrainedTokenizerFast", **NAMED[kind], **tokenizer_config}
    (folder / "tokenizer_config.json").write_text(json.dumps(stated))
    return card_for(folder, config)


def card_for(folder: Path, config: dict[str, Any] | None = None, generation_config: dict[str, Any] | None = None) -> ModelCard:
    """A card for `folder` (or a GGUF file), whose config.json is written when it is a folder."""
    config = {"model_type": "llama", **(config or {})}
    gguf = folder.suffix == ".gguf"
    if not gguf:
        (folder / "config.json").write_text(json.dumps(config))
    return ModelCard(
        reference=str(folder), path=folder, format="gguf" if gguf else "safetensors", architecture="LlamaForCausalLM", model_type="llama",
        config=config, generation_config=generation_config or {}, tensors={}, files=(folder,) if gguf else (), missing_files=(),
        parameters=0, weight_bytes=0, dtype_bytes={}, quantization=None, tokenizer=None, chat_template=False, licence=None, context_length=None,
    )  # fmt: skip
