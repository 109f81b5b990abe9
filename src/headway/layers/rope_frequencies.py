"""Inverse frequencies of rotary embeddings, for every way of stretching them that the supported models use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch


@dataclass(frozen=True, slots=True)
class RopeSpec:
    """`scaling` is a key of SCALINGS. Fields that a scaling does not name are not read by it.

    Everything here is the same for all texts of a deployment, so that an angle depends on the position only.
    """

    theta: float
    scaling: str = "default"
    factor: float = 1.0  # positions are divided by it; dynamic: what theta is multiplied by, but for an exponent
    original_context: int = 0  # llama3, yarn: positions the model was trained on before it was stretched
    low_freq_factor: float = 1.0  # llama3
    high_freq_factor: float = 4.0  # llama3
    beta_fast: float = 32.0  # yarn
    beta_slow: float = 1.0  # yarn
    truncate: bool = True  # yarn: round the ramp's ends to whole dimensions
    attention_factor: float = 1.0  # multiplies cos and sin
    divisors: tuple[float, ...] = ()  # divided: one for each frequency
    rotary_dim: int | None = None  # leading dimensions of a head that turn; None = all


def inverse_frequencies(spec: RopeSpec, head_dim: int) -> torch.Tensor:
    """float32 [turning dimensions of a head / 2]; angle of pair i at position p is p * result[i].

    Computed in float32, in the order of transformers, because at position 10,000 the last bit of a frequency moves the
    angle by 1e-3.
    """
    size = spec.rotary_dim or head_dim
    return SCALINGS[spec.scaling](1.0 / (spec.theta ** _exponents(size)), spec, size)


def _exponents(size: int) -> torch.Tensor:
    return torch.arange(0, size, 2, dtype=torch.int64).float() / size


def _default(frequencies: torch.Tensor, spec: RopeSpec, size: int) -> torch.Tensor:
    return frequencies


def _linear(frequencies: torch.Tensor, spec: RopeSpec, size: int) -> torch.Tensor:
    return frequencies / spec.factor


def _divided(frequencies: torch.Tensor, spec: RopeSpec, size: int) -> torch.Tensor:
    # transformers' longrope: 1 / (factor * theta^(2i/d)), not frequencies / factor; the last bit differs.
    return 1.0 / (torch.tensor(spec.divisors) * spec.theta ** _exponents(size))


def _dynamic(frequencies: torch.Tensor, spec: RopeSpec, size: int) -> torch.Tensor:
    """NTK-aware: theta grows until the slowest pair turns as if positions were divided by the factor."""
    theta: float = spec.theta * spec.factor ** (size / (size - 2))
    return 1.0 / (theta ** _exponents(size))


def _llama3(frequencies: torch.Tensor, spec: RopeSpec, size: int) -> torch.Tensor:
    """Long waves are divided by the factor, short ones kept, those between blended (Llama 3.1 reference code)."""
    wavelengths = 2 * math.pi / frequencies
    low, high = spec.low_freq_factor, spec.high_freq_factor
    blend = ((spec.original_context / wavelengths - low) / (high - low)).clamp(0.0, 1.0)
    blended = (1 - blend) * frequencies / spec.factor + blend * frequencies
    return torch.where(wavelengths > spec.original_context / low, frequencies / spec.factor,
                       torch.where(wavelengths < spec.original_context / high, frequencies, blended))  # fmt: skip


def _yarn(frequencies: torch.Tensor, spec: RopeSpec, size: int) -> torch.Tensor:
    """Dimensions that turn more than beta_fast times within the original context are kept, those that turn less than
    beta_slow times are divided by the factor, a linear ramp between (YaRN, arXiv 2309.00071, section 3.2)."""

    def dimension(turns: float) -> float:
        return size * math.log(spec.original_context / (turns * 2 * math.pi)) / (2 * math.log(spec.theta))

    low, high = dimension(spec.beta_fast), dimension(spec.beta_slow)
    if spec.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    width = high - low or 0.001  # a ramp of no width would divide by zero
    ramp = ((torch.arange(size // 2, dtype=torch.float32) - low) / width).clamp(0.0, 1.0)
    return frequencies / spec.factor * ramp + frequencies * (1 - ramp)


SCALINGS: Final[Mapping[str, Callable[[torch.Tensor, RopeSpec, int], torch.Tensor]]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "divided": _divided,
}
