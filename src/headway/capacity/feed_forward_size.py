"""Parameters of the feed-forward layers: dense, gated, mixtures of experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headway.capacity.config_fields import ConfigFields
from headway.capacity.layer_kinds import LayerKind

_UNGATED: Final = frozenset({"gpt2", "opt", "gpt_neox", "falcon", "phi", "starcoder2", "bloom", "mpt", "gptj", "bert", "roberta", "xlm-roberta",
                             "distilbert", "mpnet", "electra", "camembert", "nemotron", "gpt_bigcode"})  # fmt: skip
_BIASED: Final = _UNGATED - {"falcon", "mpt", "nemotron"}
_WITHOUT: Final = frozenset({"mamba", "mamba2", "falcon_mamba"})  # whose intermediate_size is that of the state
_EXPERTS: Final = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_CHOSEN: Final = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "experts_per_token")


@dataclass(frozen=True, slots=True)
class FeedForwardSize:
    """Over all layers; `active` are those that one token is multiplied with, `width` the numbers between up and down."""

    parameters: int
    active: int
    width: int


def feed_forward_size(fields: ConfigFields, hidden: int, kinds: Sequence[LayerKind]) -> FeedForwardSize:
    """Raises CapacityError (`unknown_geometry`)."""
    if fields.model_type in _WITHOUT:
        return FeedForwardSize(0, 0, 0)
    inner = fields.number("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "hidden_dim")
    if inner is not None and fields.flag("block_auto_adjust_ff_dim"):  # LFM2: two thirds, rounded up
        step = fields.number("block_multiple_of") or 256
        inner = -(-(2 * inner // 3) // step) * step
    experts = fields.number(*_EXPERTS)
    if inner is None and (experts is None or fields.number("moe_intermediate_size") is None):
        inner = 4 * hidden  # GPT-2's default, and Falcon's
    dense = _matrices(fields, hidden, inner or 0)
    if experts is None:
        return FeedForwardSize(dense * len(kinds), dense * len(kinds), inner or 0)
    width = fields.number("moe_intermediate_size", "expert_ffn_hidden_size") or inner or 0
    chosen, one = fields.number(*_CHOSEN) or 1, _matrices(fields, hidden, width)
    shared = _shared(fields, hidden, width)
    router = hidden * experts + (experts if fields.model_type == "gpt_oss" else 0)
    sparse = sum(_is_sparse(fields, index) for index in range(len(kinds)))
    plain = dense * (len(kinds) - sparse)
    total = plain + sparse * (experts * one + shared + router)
    active = plain + sparse * (min(chosen, experts) * one + shared + router)
    widest = max(inner or 0 if sparse < len(kinds) else 0, width * min(chosen, experts))
    return FeedForwardSize(total, active, widest)


def _matrices(fields: ConfigFields, hidden: int, inner: int) -> int:
    if inner == 0:
        return 0
    gated = fields.model_type not in _UNGATED
    parameters = (3 if gated else 2) * hidden * inner
    if fields.flag("mlp_bias", fields.model_type in _BIASED or fields.model_type == "gpt_oss"):
        parameters += (2 if gated else 1) * inner + hidden
    return parameters


def _shared(fields: ConfigFields, hidden: int, width: int) -> int:
    """Experts that every token passes."""
    inner = fields.number("shared_expert_intermediate_size")
    if inner is not None:
        return _matrices(fields, hidden, inner) + hidden  # with a gate of one row
    return _matrices(fields, hidden, (fields.number("n_shared_experts") or 0) * width)


def _is_sparse(fields: ConfigFields, index: int) -> bool:
    """Whether the layer is a mixture of experts."""
    if index < (fields.number("first_k_dense_replace") or 0):
        return False
    only = fields.fields.get("mlp_only_layers")
    if isinstance(only, list) and index in only:
        return False
    if (period := fields.number("expert_layer_period")) is not None:  # Jamba
        return index % period == (fields.number("expert_layer_offset") or 0)
    every = fields.number("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step") or 1
    return (index + (0 if fields.number("moe_layer_freq") else 1)) % every == 0
