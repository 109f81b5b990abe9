"""A tokenizer from the metadata of a GGUF file (`tokenizer.ggml.*`), which holds a vocabulary but no tokenizer.json.

Kinds: `gpt2` (byte-level BPE with merges) and `llama` (SentencePiece BPE: scores instead of merges, bytes as tokens).
Where formats differ, llama.cpp, which defines GGUF, is followed: a SentencePiece vocabulary puts a space before every
stretch of text between special tokens, unless `add_space_prefix` is false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

import numpy as np
from tokenizers import AddedToken, decoders, models, normalizers, processors
from tokenizers import Tokenizer as Backend

from headway.artifacts.tokenizer_presplits import DEFAULT_PRESPLIT, PRESPLITS
from headway.artifacts.tokenizer_settings import DEFAULT_TEMPLATE, TokenizerSettings
from headway.errors import ArtifactError, NotBuiltError

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)  # tokenizer.ggml.token_type
_WORD_START: Final = "\u2581"
_SPECIAL_IDS: Final = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "sep_token": "seperator_token_id",  # spelled so in the format
    "pad_token": "padding_token_id",
    "cls_token": "cls_token_id",
    "mask_token": "mask_token_id",
}
_END_IDS: Final = ("eos_token_id", "eot_token_id", "eom_token_id")
_TEMPLATE: Final = "tokenizer.chat_template"


@dataclass(frozen=True, slots=True)
class GgufTokenizer:
    """`eos_ids` are all ids that end an answer: end of text, of turn, of message."""

    backend: Backend
    settings: TokenizerSettings
    eos_ids: tuple[int, ...]


def gguf_tokenizer(metadata: Mapping[str, Any], source: str) -> GgufTokenizer:
    """Build the tokenizer that `metadata` describes; `source` names the file in errors.

    Raises ArtifactError (`tokenizer_missing`, `tokenizer_invalid`) and NotBuiltError for other kinds of vocabularies.
    """
    kind = metadata.get("tokenizer.ggml.model")
    if kind in (None, "none", "no_vocab"):
        raise ArtifactError(
            f"No tokenizer in {source}: looked for tokenizer.ggml.model and tokenizer.ggml.tokens, found {kind!r}",
            reason="tokenizer_missing", param=source, fix="Give one with --tokenizer FOLDER.",
        )  # fmt: skip
    if kind not in _BUILDERS:
        raise NotBuiltError(f"{source} has a tokenizer of kind {kind!r:.40}; only {', '.join(map(repr, _BUILDERS))} are built",
                            param=source, fix="Give the tokenizer.json of the original model with --tokenizer FOLDER.")  # fmt: skip
    words = _Vocabulary(metadata, source)
    notes: list[str] = []
    try:
        backend, adds_bos = _BUILDERS[kind](words, notes)
    except ArtifactError:
        raise
    except Exception as error:  # `tokenizers` raises plain Exception
        raise words.invalid(f"its vocabulary and merges do not fit together: {error}") from None
    backend.add_tokens(words.added_tokens())
    _set_post_processor(backend, words, words.flag("add_bos_token", adds_bos), words.flag("add_eos_token", False))
    special = {name: words.tokens[i] for name, key in _SPECIAL_IDS.items() if (i := words.token_id(key)) is not None}
    ends = tuple(dict.fromkeys(i for key in _END_IDS if (i := words.token_id(key)) is not None))
    return GgufTokenizer(backend, TokenizerSettings(special, chat_templates=_templates(metadata), notes=tuple(notes)), ends)


class _Vocabulary:
    """The checked `tokenizer.ggml.*` values of one file."""

    def __init__(self, metadata: Mapping[str, Any], source: str):
        self._metadata = metadata
        self._source = source
        tokens = metadata.get("tokenizer.ggml.tokens")
        if not _strings(tokens) or not tokens:
            raise self.invalid("tokenizer.ggml.tokens must be a list of strings")
        self.tokens = tokens
        self.types = self._numbers("token_type", _NORMAL, np.int64)
        self.scores = self._numbers("scores", 0.0, np.float64)

    def invalid(self, found: str) -> ArtifactError:
        return ArtifactError(f"The tokenizer in {self._source} cannot be used: {found}", reason="tokenizer_invalid", param=self._source,
                             fix="Convert the model again with a current llama.cpp, or give --tokenizer FOLDER.")  # fmt: skip

    def _numbers(self, key: str, absent: float, dtype: type[np.generic]) -> np.ndarray[Any, Any]:
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        if value is None:
            return np.full(len(self.tokens), absent, dtype)
        numbers = np.asarray(value)
        if numbers.shape != (len(self.tokens),) or numbers.dtype.kind not in "iuf":
            raise self.invalid(f"tokenizer.ggml.{key} must be {len(self.tokens)} numbers, one per token")
        return numbers.astype(dtype)

    def text(self, key: str) -> str | None:
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        return value if isinstance(value, str) else None

    def flag(self, key: str, absent: bool) -> bool:
        value = self._metadata.get(f"tokenizer.ggml.{key}", absent)
        if not isinstance(value, bool):
            raise self.invalid(f"tokenizer.ggml.{key} must be true or false, found {value!r:.40}")
        return value

    def token_id(self, key: str) -> int | None:
        """The id under `key`; None when absent or -1, which files use for "none"."""
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        if value is None or value in (-1, 0xFFFFFFFF):
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < len(self.tokens):
            raise self.invalid(f"tokenizer.ggml.{key} must be an id below {len(self.tokens)}, found {value!r:.40}")
        return value

    def merges(self) -> list[tuple[str, str]]:
        lines = self._metadata.get("tokenizer.ggml.merges")
        if not _strings(lines):
            raise self.invalid("tokenizer.ggml.merges must be a list of strings")
        # The first blank is the border: the alphabet of byte-level BPE has none.
        pairs = [(left, right) for left, _, right in (line.partition(" ") for line in lines)]
        if not all(right for _, right in pairs):
            raise self.invalid("every line of tokenizer.ggml.merges must be two parts with a blank between them")
        return pairs

    def ids(self) -> dict[str, int]:
        """Token text -> id. Duplicates, which some files use as filler, keep their first id."""
        ids = {token: i for i, token in reversed(list(enumerate(self.tokens)))}
        return dict(sorted(ids.items(), key=lambda item: item[1])) if len(ids) < len(self.tokens) else ids

    def added_tokens(self) -> list[AddedToken]:
        """Tokens found whole in the text: control tokens, which are special, and user-defined ones, which are not."""
        kinds = {_UNKNOWN: True, _CONTROL: True, _USER_DEFINED: False}
        chosen = np.flatnonzero(np.isin(self.types, list(kinds))).tolist()
        return [AddedToken(self.tokens[i], special=kinds[int(self.types[i])], normalized=False) for i in chosen if self.tokens[i]]


def _strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _byte_level(words: _Vocabulary, notes: list[str]) -> tuple[Backend, bool]:
    name = words.text("pre") or "default"
    presplit = PRESPLITS.get(name)
    if presplit is None:
        notes.append(f"unknown pre-tokenizer {name!r:.40}: text is cut as in GPT-2, which may give other tokens than the model was trained with")
        presplit = DEFAULT_PRESPLIT
    backend = Backend(models.BPE(vocab=words.ids(), merges=words.merges(), ignore_merges=presplit.whole_words))
    backend.pre_tokenizer = presplit.pre_tokenizer()
    backend.decoder = decoders.ByteLevel()
    return backend, presplit.adds_bos


def _sentencepiece(words: _Vocabulary, notes: list[str]) -> tuple[Backend, bool]:
    unknown = words.token_id("unknown_token_id")
    vocabulary = words.ids()
    backend = Backend(models.BPE(
        vocab=vocabulary, merges=_merges_from_scores(words, vocabulary), byte_fallback=True, fuse_unk=True,
        unk_token=None if unknown is None else words.tokens[unknown],
    ))  # fmt: skip
    space_first = words.flag("add_space_prefix", True)
    steps = [normalizers.Prepend(_WORD_START)] if space_first else []
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", _WORD_START)])
    strip = [decoders.Strip(" ", 1, 0)] if space_first else []
    backend.decoder = decoders.Sequence([decoders.Replace(_WORD_START, " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    return backend, True


def _merges_from_scores(words: _Vocabulary, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    """Every way to join two tokens into a third, best score of the result first.

    SentencePiece BPE joins the neighbours whose union has the best score; as a list of ranked merges that is every
    split of every token, ordered by the score of the token (Kudo and Richardson, 2018, section 3).
    """
    # A kind of token that is found whole in the text, or stands for a byte, never takes part in a merge.
    joined = np.isin(words.types, (_NORMAL, _UNUSED))
    parts = {token for token, i in vocabulary.items() if joined[i]}
    merges: list[tuple[str, str]] = []
    for i in np.argsort(-words.scores, kind="stable").tolist():
        token = words.tokens[i]
        if joined[i] and vocabulary[token] == i:
            merges += [
                (token[:cut], token[cut:])
                for cut in range(len(token) - 1, 0, -1)
                if token[:cut] in parts and token[cut:] in parts
            ]
    return merges


_BUILDERS: Final = {"gpt2": _byte_level, "llama": _sentencepiece}


def _set_post_processor(backend: Backend, words: _Vocabulary, adds_bos: bool, adds_eos: bool) -> None:
    """Put BOS before and EOS after a text that is encoded with special tokens."""
    ends = [words.token_id(key) if wanted else None for key, wanted in (("bos_token_id", adds_bos), ("eos_token_id", adds_eos))]
    before, after = ([] if i is None else [words.tokens[i]] for i in ends)
    ids = [(words.tokens[i], i) for i in ends if i is not None]
    backend.post_processor = processors.TemplateProcessing(
        single=[*before, "$A", *after], pair=[*before, "$A", *after, *(f"{t}:1" for t in before), "$B:1", *(f"{t}:1" for t in after)],
        special_tokens=list(dict(ids).items()),
    )  # fmt: skip


def _templates(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The default chat template and the named ones (`tokenizer.chat_template.NAME`)."""
    found = {key: text for key, text in metadata.items() if key.startswith(_TEMPLATE) and isinstance(text, str)}
    return {key.removeprefix(f"{_TEMPLATE}.") if key != _TEMPLATE else DEFAULT_TEMPLATE: text for key, text in found.items()}
