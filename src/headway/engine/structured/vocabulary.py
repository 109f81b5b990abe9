"""The vocabulary as xgrammar knows it: the bytes of each token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import torch

from headway.artifacts.tokenizer import Tokenizer
from headway.errors import NotBuiltError

if TYPE_CHECKING:
    from xgrammar import TokenizerInfo


_NOT_IN_JSON: Final = frozenset(range(32)) - set(b"\n\r")


def check_exact(tokenizer: Tokenizer) -> None:
    """Raises NotBuiltError for a vocabulary whose tokens have no exact bytes."""
    if not tokenizer.byte_exact:
        raise NotBuiltError(
            "structured output needs a vocabulary whose tokens have exact bytes, and that of this model has none", param="structured_outputs"
        )


def grammar_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> TokenizerInfo:
    """`vocab_size`: width of the logits. Special tokens and ids without a token have no bytes and so are never part of a form; tokens that
    end an answer are allowed where a form may end. The tokenizer is exact (`check_exact`).
    """
    from xgrammar import TokenizerInfo, VocabType

    pieces = [b"" if i in tokenizer.special_ids else tokenizer.token_bytes(i) for i in range(vocab_size)]
    ends = [i for i in tokenizer.eos_ids if i < vocab_size]
    return TokenizerInfo(pieces, VocabType.RAW, vocab_size=vocab_size, stop_token_ids=ends)


def without(ids: Iterable[int], vocab_size: int) -> torch.Tensor:
    """[words] int32: a mask, as xgrammar fills them, of all ids but these."""
    allowed = torch.full(((vocab_size + 31) // 32 * 32,), True)
    allowed[list(ids)] = False
    weights = torch.tensor([1 << bit for bit in range(31)] + [-(1 << 31)], dtype=torch.int64)
    return (allowed.view(-1, 32) * weights).sum(1).to(torch.int32)


def control_ids(tokenizer: Tokenizer, vocab_size: int) -> list[int]:
    """Ids whose bytes include control characters other than line ends. JSON has them nowhere but as blanks; xgrammar 0.2 allows them inside of strings with
    a length or a pattern."""
    return [i for i in range(vocab_size) if not _NOT_IN_JSON.isdisjoint(tokenizer.token_bytes(i))]
