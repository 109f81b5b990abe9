"""A text as a model reads it: token ids, and which bytes of the text each of them ends at."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headway.artifacts.tokenizer import Tokenizer
from headway.errors import ConfigError
from headway.evaluation.scoring import ScoringRequest
from headway.evaluation.texts import Text
from headway.evaluation.windows import windows

Spans: TypeAlias = npt.NDArray[np.int64]
Encode: TypeAlias = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """`ends[i]` is the byte of the UTF-8 text at which token i ends, as near as the tokenizer tells; `prefix` are tokens that every
    window begins with (a begin-of-text token, where the tokenizer adds one)."""

    text: Text
    ids: tuple[int, ...]
    ends: Spans
    prefix: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return len(self.text.content.encode())

    @property
    def words(self) -> int:
        return len(self.text.content.split())

    @property
    def first_scored(self) -> int:
        """Without a prefix nothing stands before the first token, so it cannot be scored."""
        return 0 if self.prefix else 1

    @property
    def scored_ends(self) -> Spans:
        return self.ends[self.first_scored :]


def tokenized(text: Text, tokenizer: Tokenizer) -> TokenizedText:
    """Special tokens that are spelled out in the text become what they say, as in a request. Raises ConfigError (`evaluation_text`)
    for a text of a single token."""
    encoding = tokenizer.backend.encode_batch([text.content], add_special_tokens=False)[0]
    before = np.cumsum([0, *(len(character.encode()) for character in text.content)])
    ends = np.array([before[end] for _, end in encoding.offsets], dtype=np.int64)
    prefix = (tokenizer.bos_id,) if tokenizer.adds_bos and tokenizer.bos_id is not None else ()
    return _checked(TokenizedText(text, tuple(encoding.ids), ends, prefix))


def tokenized_by(text: Text, encode: Encode, prefix: Sequence[int]) -> TokenizedText:
    """Where only ids are known, tokens are taken to be equally long."""
    ids = tuple(encode(text.content))
    nbytes = len(text.content.encode())
    ends = np.linspace(0, nbytes, len(ids) + 1)[1:].astype(np.int64)
    return _checked(TokenizedText(text, ids, ends, tuple(prefix)))


def _checked(found: TokenizedText) -> TokenizedText:
    if len(found.ids) <= found.first_scored:
        raise ConfigError(
            f"the text {found.text.name} is {len(found.ids)} token(s) long, so there is nothing to predict", reason="evaluation_text", param="text",
            fix="Give a text of some thousand words.",
        )  # fmt: skip
    return found


def text_requests(text: TokenizedText, width: int, stride: int) -> list[ScoringRequest]:
    """One for each window; together they score all tokens from `first_scored` on, in order. `width` counts the prefix."""
    lead = len(text.prefix)
    found = []
    for window in windows(len(text.ids), width - lead, min(stride, width - lead)):
        tokens = text.prefix + text.ids[window.start : window.end]
        start = max(window.scored - window.start + lead, 1)
        if start < len(tokens):
            found.append(ScoringRequest(tokens, start))
    return found


def byte_entropy(text: Text) -> float:
    """Bits that a byte of the text takes when only the frequencies of its own bytes are known: a model that needs more has not
    learned to write this language, or lost it."""
    counts = Counter(text.content.encode())
    total = counts.total()
    return -sum(count / total * math.log2(count / total) for count in counts.values())
