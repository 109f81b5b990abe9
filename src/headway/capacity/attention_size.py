"""Parameters of one attention layer, and what it keeps of a token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.capacity.config_fields import ConfigFields
from headway.capacity.kv_geometry import kv_geometry

# Model types by which of their attention projections have a bias when no field says so.
_QKV_BIAS: Final = frozenset({"qwen2", "qwen2_moe", "gpt2", "opt", "gpt_neox", "phi", "bert", "roberta", "xlm-roberta", "distilbert", "gpt_oss",
                              "starcoder2", "electra", "camembert", "mpnet", "glm4"})  # fmt: skip
_NO_OUTPUT_BIAS: Final = frozenset({"glm4", "glm4_moe"})  # whatever attention_bias says
_OUTPUT_BIAS: Final = _QKV_BIAS - {"qwen2", "qwen2_moe", "glm4"}
_HEAD_NORMS: Final = frozenset({"qwen3", "qwen3_moe", "gemma3", "gemma3_text", "exaone4", "lfm2", "hunyuan_v1_dense"})
_GATED: Final = ("qwen3_next", "qwen3_5")  # the query projection makes an output gate as well; head norms, too
_WIDE_NORMS: Final = frozenset({"olmo2"})  # over all heads at once


@dataclass(frozen=True, slots=True)
class AttentionSize:
    """`cached_numbers` for each of `cached_heads` heads per token; heads are 0 where all share one latent vector."""

    parameters: int
    kv_heads: int
    head_dim: int
    cached_heads: int
    cached_numbers: int


def attention_size(fields: ConfigFields, hidden: int, heads: int) -> AttentionSize:
    """Multi-head, grouped and multi-query attention, and multi-head latent attention (DeepSeek-V2, arXiv 2405.04434).

    A model without attention (`heads` 0) has size 0. Raises CapacityError (`unknown_geometry`).
    """
    if heads == 0:
        return AttentionSize(0, 0, 0, 0, 0)
    if fields.number("kv_lora_rank") is not None:
        return _latent(fields, hidden, heads)
    geometry = kv_geometry(fields.fields)
    query, kept = heads * geometry.head_dim, geometry.kv_heads * geometry.head_dim
    gated = fields.model_type.startswith(_GATED)
    parameters = hidden * (query * (2 if gated else 1) + 2 * kept) + query * hidden
    default = fields.model_type in _QKV_BIAS
    if fields.flag("attention_bias", default) or fields.flag("qkv_bias") or fields.flag("use_qkv_bias"):
        parameters += query + 2 * kept
    if fields.model_type not in _NO_OUTPUT_BIAS and fields.flag("attention_out_bias", fields.flag("attention_bias", fields.model_type in _OUTPUT_BIAS)):
        parameters += hidden
    if gated or fields.model_type in _HEAD_NORMS:
        parameters += 2 * geometry.head_dim
    elif fields.model_type in _WIDE_NORMS:
        parameters += query + kept
    if fields.model_type == "gpt_oss":
        parameters += heads  # sinks
    return AttentionSize(parameters, geometry.kv_heads, geometry.head_dim, geometry.kv_heads, 2 * geometry.head_dim)


def _latent(fields: ConfigFields, hidden: int, heads: int) -> AttentionSize:
    """One compressed vector and one rotated key per token serve all heads."""
    rank, rotated = fields.need("kv_lora_rank"), fields.need("qk_rope_head_dim")
    plain, value = fields.need("qk_nope_head_dim"), fields.need("v_head_dim")
    low = fields.number("q_lora_rank")
    query = heads * (plain + rotated)
    asked = hidden * query if low is None else hidden * low + low + low * query
    kept = hidden * (rank + rotated) + rank + rank * heads * (plain + value)
    return AttentionSize(asked + kept + heads * value * hidden, heads, plain + rotated, 0, rank + rotated)
