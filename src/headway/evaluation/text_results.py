"""What a model makes of texts, and how two models differ on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headway.evaluation.interval import Interval, ratio_interval, summed
from headway.evaluation.scoring import Numbers
from headway.evaluation.token_scores import Flags
from headway.evaluation.tokenized_text import TokenizedText, byte_entropy

BLOCK_BYTES: Final = 512
"""Neighbouring tokens are hard or easy together; stretches of this length are taken to be independent."""
_NATS_PER_BIT: Final = math.log(2)


@dataclass(frozen=True, slots=True)
class TextResult:
    """Log-probabilities of the tokens from `text.first_scored` on."""

    text: TokenizedText
    logprobs: Numbers


@dataclass(frozen=True, slots=True)
class Perplexity:
    """`nats` is what the scored tokens of all texts take together; `entropy` bits a byte would take by the frequencies of bytes alone."""

    nats: float
    tokens: int
    nbytes: int
    words: int
    entropy: float

    @property
    def per_token(self) -> float:
        return _exp(self.nats / self.tokens)

    @property
    def per_byte(self) -> float:
        """Comparable between tokenizers, as is `per_word`."""
        return _exp(self.nats / self.nbytes)

    @property
    def per_word(self) -> float:
        return _exp(self.nats / max(self.words, 1))

    @property
    def bits_per_byte(self) -> float:
        return self.nats / _NATS_PER_BIT / self.nbytes

    @property
    def finite(self) -> bool:
        return math.isfinite(self.nats)

    @property
    def senseless(self) -> bool:
        """Worse than counting bytes: no model of this language."""
        return not self.finite or self.bits_per_byte > self.entropy

    def as_json(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens, "bytes": self.nbytes, "words": self.words, "perplexity": self.per_token, "word_perplexity": self.per_word,
            "byte_perplexity": self.per_byte, "bits_per_byte": self.bits_per_byte,
        }  # fmt: skip


def perplexity(results: Sequence[TextResult]) -> Perplexity:
    texts = [result.text for result in results]
    nbytes = sum(text.nbytes - (int(text.ends[text.first_scored - 1]) if text.first_scored else 0) for text in texts)
    entropy = sum(byte_entropy(text.text) * text.nbytes for text in texts) / sum(text.nbytes for text in texts)
    return Perplexity(
        -float(sum(result.logprobs.sum() for result in results)), sum(len(result.logprobs) for result in results),
        nbytes, sum(text.words for text in texts), entropy,
    )  # fmt: skip


def perplexity_increase(results: Sequence[TextResult], base: Sequence[TextResult]) -> Interval:
    """How much larger the perplexity of a token is than that of the baseline, as a share of it; tokens are those of the baseline's
    tokenizer, so models with different ones can be compared. Blocks of both are the same bytes of the same texts."""
    sums, counts = [], []
    for ours, theirs in zip(results, base, strict=True):
        blocks = -(-ours.text.nbytes // BLOCK_BYTES)
        own, other = _blocks(ours.text), _blocks(theirs.text)
        worse = summed(-ours.logprobs, own, blocks) - summed(-theirs.logprobs, other, blocks)
        number = np.bincount(other, minlength=blocks).astype(np.float64)
        sums.append(worse[number > 0])
        counts.append(number[number > 0])
    found = ratio_interval(np.concatenate(sums), np.concatenate(counts))
    return Interval(*(math.expm1(each) if each < 700 else math.inf for each in (found.value, found.low, found.high)))


@dataclass(frozen=True, slots=True)
class Divergence:
    """KL(baseline || model) over the positions of all texts, in nats, and the share of positions with the same first choice."""

    mean: float
    median: float
    p99: float
    most: float
    agreement: float

    def as_json(self) -> dict[str, float]:
        return {"mean": self.mean, "median": self.median, "p99": self.p99, "max": self.most}


def divergence(values: Numbers, agrees: Flags) -> Divergence:
    """`values` in nats; rounding may leave one a little below 0."""
    kept = np.maximum(values, 0.0)
    return Divergence(float(kept.mean()), float(np.median(kept)), float(np.quantile(kept, 0.99)), float(kept.max()), float(agrees.mean()))


def _blocks(text: TokenizedText) -> np.ndarray:
    return np.maximum(text.scored_ends - 1, 0) // BLOCK_BYTES


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
