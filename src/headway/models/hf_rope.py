"""Rotary settings of a Hugging Face config, in the spelling of transformers 4 (rope_theta, rope_scaling) and 5
(rope_parameters)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from headway.errors import ArtifactError, NotBuiltError
from headway.layers.rope_frequencies import RopeSpec
from headway.models.hf_fields import count, flag, number


def rope_spec(config: Mapping[str, Any], default_theta: float = 10_000.0) -> RopeSpec:
    """The rotary embedding of a model whose layers all rotate alike."""
    settings = config.get("rope_scaling") or config.get("rope_parameters") or {}
    return scaled_rope(settings, number(config, "rope_theta", default_theta), count(config, "max_position_embeddings"))


def scaled_rope(settings: object, theta: float, context: int) -> RopeSpec:
    """`settings` is a rope_scaling or rope_parameters object; a `rope_theta` in it wins over `theta`.

    Raises ArtifactError (`invalid_model_config`) and, for scalings that are not there, NotBuiltError.
    """
    if not isinstance(settings, Mapping):
        raise ArtifactError(
            f"rope settings must be an object, found {settings!r:.80}",
            reason="invalid_model_config",
            param="rope_scaling",
        )
    kind = settings.get("rope_type", settings.get("type", "default"))
    read = _KINDS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise NotBuiltError(f"rope scaling {kind!r:.40}; supported: {', '.join(_KINDS)}", param="rope_scaling")
    if number(settings, "partial_rotary_factor", 1.0) != 1.0:
        raise NotBuiltError("partial_rotary_factor other than 1", param="rope_scaling")
    return read(settings, number(settings, "rope_theta", theta), context)


def _default(settings: Mapping[str, Any], theta: float, context: int) -> RopeSpec:
    return RopeSpec(theta)


def _dynamic(settings: Mapping[str, Any], theta: float, context: int) -> RopeSpec:
    """Dynamic NTK changes nothing up to max_position_embeddings, and requests end there: beyond, the frequencies would
    depend on the length of each sequence, and cached keys of one length would be wrong for another."""
    number(settings, "factor")
    return RopeSpec(theta)


def _linear(settings: Mapping[str, Any], theta: float, context: int) -> RopeSpec:
    return RopeSpec(theta, "linear", factor=number(settings, "factor"))


def _llama3(settings: Mapping[str, Any], theta: float, context: int) -> RopeSpec:
    return RopeSpec(
        theta, "llama3", factor=number(settings, "factor"), low_freq_factor=number(settings, "low_freq_factor"),
        high_freq_factor=number(settings, "high_freq_factor"),
        original_context=count(settings, "original_max_position_embeddings", context),
    )  # fmt: skip


def _yarn(settings: Mapping[str, Any], theta: float, context: int) -> RopeSpec:
    original = count(settings, "original_max_position_embeddings", context)
    factor = number(settings, "factor", context / original)
    return RopeSpec(
        theta, "yarn", factor=factor, original_context=original, beta_fast=number(settings, "beta_fast", 32.0),
        beta_slow=number(settings, "beta_slow", 1.0), truncate=flag(settings, "truncate", True),
        attention_factor=_yarn_attention(settings, factor),
    )  # fmt: skip


def _yarn_attention(settings: Mapping[str, Any], factor: float) -> float:
    """0.1 mscale ln(factor) + 1 (YaRN, equation 22), as a ratio when the config gives two."""

    def grown(mscale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0

    if settings.get("attention_factor") is not None:
        return number(settings, "attention_factor")
    if settings.get("mscale") and settings.get("mscale_all_dim"):
        return grown(number(settings, "mscale")) / grown(number(settings, "mscale_all_dim"))
    return grown(1.0)


def _longrope(settings: Mapping[str, Any], theta: float, context: int) -> RopeSpec:
    """Only with one list for short and long texts: how GGUF files of Llama 3 carry their scaling."""
    short, long = settings.get("short_factor"), settings.get("long_factor")
    if short != long or not isinstance(short, list) or settings.get("attention_factor") is None:
        raise NotBuiltError("longrope with different factors for short and long texts", param="rope_scaling")
    return RopeSpec(
        theta, "divided", divisors=tuple(float(x) for x in short), attention_factor=number(settings, "attention_factor")
    )


_KINDS: Final[dict[str, Callable[[Mapping[str, Any], float, int], RopeSpec]]] = {
    "default": _default, "linear": _linear, "dynamic": _dynamic, "llama3": _llama3, "yarn": _yarn, "longrope": _longrope,
}  # fmt: skip
