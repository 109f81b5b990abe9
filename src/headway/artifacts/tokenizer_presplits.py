"""How byte-level BPE vocabularies cut text before merging: one row per value of `tokenizer.ggml.pre`.

A GGUF file names its pre-tokenizer and does not contain it. The patterns are those of the models' own tokenizer.json;
the names are llama.cpp's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tokenizers import Regex, pre_tokenizers

_GPT2: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_DIGIT: Final = r"\p{N}"
_CONTRACTION: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS: Final = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_LLAMA3: Final = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}"
_QWEN2: Final = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_SYMBOLS}|{_SPACES}"
# Words of these two are cut at a change from small to capital letters.
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_LEAD: Final = r"[^\r\n\p{L}\p{N}]?"
_SYMBOLS_SLASH: Final = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_TEKKEN: Final = rf"{_LEAD}{_UPPER}*{_LOWER}+|{_LEAD}{_UPPER}+{_LOWER}*|\p{{N}}|{_SYMBOLS_SLASH}|{_SPACES}"
_GPT4O: Final = (
    rf"{_LEAD}{_UPPER}*{_LOWER}+{_CONTRACTION}?|{_LEAD}{_UPPER}+{_LOWER}*{_CONTRACTION}?"
    rf"|\p{{N}}{{1,3}}|{_SYMBOLS_SLASH}|{_SPACES}"
)
_DEEPSEEK3: Final = (
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}",
)


@dataclass(frozen=True, slots=True)
class Presplit:
    """`patterns` cut one after the other. `whole_words`: a piece that is a token as it stands is not merged from parts.

    `adds_bos` holds for files without `tokenizer.ggml.add_bos_token`.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    adds_bos: bool = False

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        cuts = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in self.patterns]
        return pre_tokenizers.Sequence([*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


DEFAULT_PRESPLIT: Final = Presplit((_GPT2,))
_ROWS: Final[tuple[tuple[Presplit, str], ...]] = (
    (DEFAULT_PRESPLIT, "default gpt-2 phi-2 mpt olmo jina-es jina-de jina-v2-es jina-v2-de jina-v2-code roberta-bpe modern-bert"),
    (Presplit((_DIGIT, _GPT2)), "smollm starcoder refact command-r codeshell exaone minerva-7b"),
    (Presplit((_LLAMA3,), whole_words=True, adds_bos=True), "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2"),
    (Presplit((_LLAMA3,)), "dbrx smaug-bpe"),
    (Presplit((_QWEN2,)), "qwen2 deepseek-r1-qwen stablelm2 megrez"),
    (Presplit((_TEKKEN,), whole_words=True, adds_bos=True), "tekken"),
    (Presplit((_GPT4O,)), "gpt-4o llama4"),
    (Presplit(_DEEPSEEK3), "deepseek-v3"),
)


def _by_name() -> Iterator[tuple[str, Presplit]]:
    for presplit, names in _ROWS:
        for name in names.split():
            yield name, presplit


PRESPLITS: Final[dict[str, Presplit]] = dict(_by_name())
