"""The most that one step of the engine needs beside weights and cache: intermediate results and logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.capacity.model_shape import ModelShape

_SCORE_BYTES: Final = 8 << 20  # of one tile of attention scores (kernels/attention_tiles), which softmax keeps twice
_TILE_QUERIES: Final = 128
_GATHER_BYTES: Final = 8 << 20  # keys and values gathered at once for several sequences (kernels/attention_plan)


@dataclass(frozen=True, slots=True)
class Step:
    """The largest step: `tokens` computed at once, `rows` of them sampled, in contexts of up to `context` tokens."""

    tokens: int
    rows: int
    context: int


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How an engine computes. `tiles`: attention scores go through memory; `logit_bytes` per vocabulary entry and sampled row."""

    tiles: bool
    logit_bytes: int


# Sampling here: float32 logits and probabilities, and in float64 the probabilities again and their running sum (engine/sampler).
HEADWAY: Final = Arithmetic(tiles=True, logit_bytes=4 + 4 + 8 + 8)
# vLLM: float32 logits, about three times over (its own warm-up of the sampler runs out of memory at that size).
VLLM: Final = Arithmetic(tiles=False, logit_bytes=3 * 4)


def activation_bytes(shape: ModelShape, step: Step, dtype_bytes: int, arithmetic: Arithmetic, ranks: int = 1) -> int:
    """Bytes on one of `ranks` devices. Feed-forward: the residual stream, what was normalised, up and gate and their product;
    attention: query, key, value and what is mixed of them. Logits come when all of that is free again.
    """
    if shape.kind == "table":
        return 0
    tokens, hidden = step.tokens, shape.hidden
    inner = -(-3 * shape.intermediate // ranks)
    heads = -(-(2 * shape.heads + 2 * max(shape.kv_heads, 1)) * shape.head_dim // ranks)
    widest = tokens * (2 * hidden + max(inner, heads)) * dtype_bytes
    if not arithmetic.tiles:
        forward = widest
    else:
        tile = min(_SCORE_BYTES, shape.heads * min(_TILE_QUERIES, tokens) * step.context * dtype_bytes)
        mixing = tokens * (2 * hidden + heads) * dtype_bytes + 2 * tile
        per_token = 2 * shape.kv_heads * shape.head_dim * dtype_bytes
        gathered = max(step.context * per_token, min(_GATHER_BYTES, step.rows * step.context * per_token))
        masks = tokens * min(tokens, step.context) * dtype_bytes
        forward = max(widest, mixing) + gathered + masks
    logits = step.rows * shape.vocabulary * arithmetic.logit_bytes // ranks if shape.kind == "decoder" else 0
    return max(forward, logits)
