"""LabelLogits: what a question wants of a language model, as the `Row.detail` of its rows.

The outcome is float32 [labels + 2]: logits of these token ids at the last position; then the logarithm of the sum of exp over the
whole vocabulary; then the largest logit of the vocabulary. `exp(logit - outcome[-2])` is a label's probability among all tokens,
so the mass of the labels is the sum of those, and the likeliest token is a label exactly when the largest label logit reaches
`outcome[-1]`. All logits are before any temperature.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelLogits:
    """Token ids; at least one."""

    token_ids: tuple[int, ...]
