"""Layers that keep a state of fixed size instead of keys and values: Mamba and gated delta networks."""

from __future__ import annotations

from dataclasses import dataclass

from headway.capacity.config_fields import ConfigFields


@dataclass(frozen=True, slots=True)
class StateSize:
    """Of one layer: parameters, and numbers kept for each sequence whatever its length."""

    parameters: int = 0
    numbers: int = 0


def state_size(fields: ConfigFields, hidden: int) -> StateSize:
    """Mamba (arXiv 2312.00752), Mamba 2 (arXiv 2405.21060), gated delta rule (arXiv 2412.06464); size 0 for other models."""
    if fields.number("linear_num_value_heads") is not None:
        return _delta(fields, hidden)
    if fields.number("mamba_num_heads", "mamba_n_heads") is not None:
        return _mamba2(fields, hidden)
    if fields.number("mamba_d_state", "state_size") is not None:
        return _mamba(fields, hidden)
    if (taps := fields.number("conv_L_cache")) is not None:  # LFM2: a gated convolution
        return StateSize(4 * hidden * hidden + hidden * taps, hidden * (taps - 1))
    return StateSize()


def _delta(fields: ConfigFields, hidden: int) -> StateSize:
    key = fields.need("linear_num_key_heads") * fields.need("linear_key_head_dim")
    value_heads, value_dim = fields.need("linear_num_value_heads"), fields.need("linear_value_head_dim")
    value, kernel = value_heads * value_dim, fields.number("linear_conv_kernel_dim") or 4
    mixed = 2 * key + value
    parameters = hidden * (2 * key + 2 * value + 2 * value_heads) + mixed * kernel + 2 * value_heads + value_dim + value * hidden
    return StateSize(parameters, value_heads * value_dim * fields.need("linear_key_head_dim") + mixed * (kernel - 1))


def _mamba2(fields: ConfigFields, hidden: int) -> StateSize:
    heads, size = fields.need("mamba_num_heads", "mamba_n_heads"), fields.number("mamba_head_dim", "mamba_d_head") or 64
    state, groups = fields.need("ssm_state_size", "mamba_d_state"), fields.number("n_groups", "mamba_n_groups") or 1
    kernel, inner = fields.number("conv_kernel", "mamba_d_conv") or 4, heads * size
    mixed = inner + 2 * groups * state
    parameters = hidden * (inner + mixed + heads) + mixed * (kernel + 1) + 3 * heads + inner + inner * hidden
    return StateSize(parameters, heads * size * state + mixed * (kernel - 1))


def _mamba(fields: ConfigFields, hidden: int) -> StateSize:
    inner = (fields.number("mamba_expand", "expand") or 2) * hidden
    state, kernel = fields.need("mamba_d_state", "state_size"), fields.number("mamba_d_conv", "conv_kernel") or 4
    rank = fields.number("mamba_dt_rank", "time_step_rank") or -(-hidden // 16)
    norms = rank + 2 * state if fields.model_type == "jamba" else 0
    parameters = (
        2 * hidden * inner + inner * (kernel + 1) + inner * (rank + 2 * state) + rank * inner + inner + inner * state + inner + inner * hidden + norms
    )
    return StateSize(parameters, inner * state + inner * (kernel - 1))
