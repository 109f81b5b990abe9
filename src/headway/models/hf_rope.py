"""Rotary settings of a Hugging Face config, in the spelling of transformers 4 (rope_theta, rope_scaling) and 5
(rope_parameters).

Where frequencies depend on the length of a text (dynamic, longrope), all texts get those of the longest that the
deployment serves: keys in the cache are shared between sequences of any length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from headway.errors import ArtifactError, NotBuiltError
from headway.layers.rope_frequencies import RopeSpec, inverse_frequencies
from headway.models.hf_fields import count, flag, number


@dataclass(frozen=True, slots=True)
class RopeSizes:
    """In positions: `trained` is max_position_embeddings, `original` what that was before it was stretched, where the
    config says so; `served` is the longest sequence of the deployment."""

    head_dim: int
    trained: int
    original: int | None
    served: int


def rope_spec(
    config: Mapping[str, Any], head_dim: int, context_length: int, *, default_theta: float = 10_000.0,
    default_fraction: float | None = None,
) -> RopeSpec:  # fmt: skip
    """The rotary embedding of a model whose layers all rotate alike.

    `default_fraction` of every head turns; None: the architecture always turns all of it, and a config with another
    `partial_rotary_factor` is refused.
    """
    settings = rope_settings(config, "rope_scaling") or rope_settings(config, "rope_parameters")
    theta = number(config, "rope_theta", default_theta)
    fraction = number(config, "partial_rotary_factor", 1.0 if default_fraction is None else default_fraction)
    spec = scaled_rope(settings, theta, rope_sizes(config, head_dim, context_length), fraction)
    if default_fraction is None and spec.rotary_dim is not None:
        raise NotBuiltError(
            "partial_rotary_factor other than 1 in this architecture", param="partial_rotary_factor"
        )
    return spec


def rope_settings(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A rope_scaling or rope_parameters object, empty where the config has none. Raises ArtifactError (`invalid_model_config`)."""
    settings = config.get(name) or {}
    if not isinstance(settings, Mapping):
        raise _invalid(name, f"{name} must be an object with rope settings, found {settings!r:.80}")
    return settings


def rope_sizes(config: Mapping[str, Any], head_dim: int, context_length: int) -> RopeSizes:
    """Raises ArtifactError (`invalid_model_config`)."""
    original = config.get("original_max_position_embeddings")
    return RopeSizes(
        head_dim, count(config, "max_position_embeddings"),
        None if original is None else count(config, "original_max_position_embeddings"), context_length,
    )  # fmt: skip


def scaled_rope(settings: Mapping[str, Any], theta: float, sizes: RopeSizes, fraction: float = 1.0) -> RopeSpec:
    """`settings` is a rope_scaling or rope_parameters object; its `rope_theta` and `partial_rotary_factor` win.

    Raises ArtifactError (`invalid_model_config`) and, for scalings that are not there, NotBuiltError.
    """
    kind = settings.get("rope_type", settings.get("type", "default"))
    read = _KINDS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise NotBuiltError(f"rope scaling {kind!r:.40}; supported: {', '.join(_KINDS)}", param="rope_scaling")
    theta = number(settings, "rope_theta", theta)
    if theta <= 1:
        raise _invalid("rope_theta", f"rope_theta must be above 1, found {theta:g}")
    # The little more: 30 of 44 dimensions are a factor whose product with 44 is 29.999...
    turning = int(sizes.head_dim * min(number(settings, "partial_rotary_factor", fraction), 2.0) + 1e-6)
    if turning == sizes.head_dim and turning % 2:
        raise _invalid("head_dim", f"head_dim must be an even number where all of a head turns, found {turning}")
    if turning % 2 or not 0 < turning <= sizes.head_dim:
        raise _invalid(
            "partial_rotary_factor",
            f"partial_rotary_factor must turn an even number of the {sizes.head_dim} dimensions of a head, found {turning}",
        )
    spec = read(settings, RopeSpec(theta, rotary_dim=None if turning == sizes.head_dim else turning), sizes)
    if not _finite(spec, sizes.head_dim):
        raise _invalid("rope_scaling", f"rope scaling {kind} gives rotations that are no finite numbers: {spec!r:.300}")
    return spec


def _finite(spec: RopeSpec, head_dim: int) -> bool:
    """Whether angles and their cosines can be computed in float32."""
    try:
        frequencies = inverse_frequencies(spec, head_dim)
    except (ArithmeticError, ValueError):
        return False
    return bool(frequencies.isfinite().all()) and spec.attention_factor <= torch.finfo(torch.float32).max


def _invalid(name: str, message: str) -> ArtifactError:
    return ArtifactError(
        message, reason="invalid_model_config", param=name, fix="Check config.json against the model's original."
    )


def _default(settings: Mapping[str, Any], plain: RopeSpec, sizes: RopeSizes) -> RopeSpec:
    return plain


def _linear(settings: Mapping[str, Any], plain: RopeSpec, sizes: RopeSizes) -> RopeSpec:
    return replace(plain, scaling="linear", factor=number(settings, "factor"))


def _dynamic(settings: Mapping[str, Any], plain: RopeSpec, sizes: RopeSizes) -> RopeSpec:
    """Dynamic NTK: nothing up to max_position_embeddings, beyond it a theta that grows with the length."""
    factor = number(settings, "factor")
    if sizes.served <= sizes.trained:
        return plain
    if (plain.rotary_dim or sizes.head_dim) == 2:
        raise _invalid("head_dim", "dynamic rope scaling needs heads with more than 2 turning dimensions")
    return replace(plain, scaling="dynamic", factor=factor * sizes.served / sizes.trained - (factor - 1))


def _original(settings: Mapping[str, Any], sizes: RopeSizes) -> int:
    """A field of the config itself wins over one in the settings, as in transformers."""
    found = sizes.original or count(settings, "original_max_position_embeddings", sizes.trained)
    if found == 1:
        raise _invalid("original_max_position_embeddings", "original_max_position_embeddings must be above 1")
    return found


def _llama3(settings: Mapping[str, Any], plain: RopeSpec, sizes: RopeSizes) -> RopeSpec:
    return replace(
        plain, scaling="llama3", factor=number(settings, "factor"),
        low_freq_factor=number(settings, "low_freq_factor"), high_freq_factor=number(settings, "high_freq_factor"),
        original_context=_original(settings, sizes),
    )  # fmt: skip


def _yarn(settings: Mapping[str, Any], plain: RopeSpec, sizes: RopeSizes) -> RopeSpec:
    original = _original(settings, sizes)
    factor = number(settings, "factor", sizes.trained / original)
    return replace(
        plain, scaling="yarn", factor=factor, original_context=original, beta_fast=number(settings, "beta_fast", 32.0),
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


def _longrope(settings: Mapping[str, Any], plain: RopeSpec, sizes: RopeSizes) -> RopeSpec:
    """One list of divisors for deployments up to the original context, another for longer ones (LongRoPE, arXiv
    2402.13753). GGUF files of Llama 3 carry their scaling like this, too, with two equal lists."""
    original = _original(settings, sizes)
    pairs = (plain.rotary_dim or sizes.head_dim) // 2
    both = {name: _divisors(settings, name, pairs) for name in ("short_factor", "long_factor")}
    factor = number(settings, "factor", sizes.trained / original)
    grown = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    return replace(
        plain, scaling="divided", divisors=both["long_factor" if sizes.served > original else "short_factor"],
        attention_factor=number(settings, "attention_factor", grown),
    )  # fmt: skip


def _divisors(settings: Mapping[str, Any], name: str, pairs: int) -> tuple[float, ...]:
    values = settings.get(name)
    if (
        not isinstance(values, list)
        or len(values) != pairs
        or not all(type(x) in (int, float) and math.isfinite(x) and x > 0 for x in values)
    ):
        raise _invalid(name, f"{name} of longrope must be {pairs} positive numbers, found {values!r:.80}")
    return tuple(float(x) for x in values)


# "su" is what longrope was called before it had a name.
_KINDS: Final[dict[str, Callable[[Mapping[str, Any], RopeSpec, RopeSizes], RopeSpec]]] = {
    "default": _default, "linear": _linear, "dynamic": _dynamic, "llama3": _llama3, "yarn": _yarn, "longrope": _longrope,
    "su": _longrope,
}  # fmt: skip
