"""A sound at another rate: band-limited interpolation with a sinc under a Hann window.

Source: the definition and defaults of torchaudio's `resample` (six zero crossings on each side, the cut-off at 0.99 of the
lower of the two Nyquist frequencies). With r = 0.99 min(a, b), a sample at time t of the new rate is the sum over the old samples x_n at
times n / a of x_n * (r / a) * sinc(r (n / a - t)) * cos^2(pi r (n / a - t) / 12), where |r (n / a - t)| < 6.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import torch
from torch.nn.functional import conv1d, pad

from headway.runtime.multimodal.wav import Sound

_CROSSINGS: Final = 6
_ROLLOFF: Final = 0.99


def mono_at(sound: Sound, rate: int) -> torch.Tensor:
    """float32 [ceil(frames * rate / sound.rate)]: each channel resampled, then their mean."""
    return resampled(sound.samples, sound.rate, rate).mean(0)


def resampled(samples: torch.Tensor, old: int, new: int) -> torch.Tensor:
    """float32 [channels, frames] -> [channels, ceil(frames * new / old)]."""
    if old == new:
        return samples
    common = math.gcd(old, new)
    old, new = old // common, new // common
    kernel, width = _kernel(old, new)
    frames = samples.shape[1]
    # One step of `old` samples gives `new` of the new rate.
    steps = conv1d(pad(samples[:, None], (width, width + old)), kernel, stride=old)
    return steps.transpose(1, 2).reshape(len(samples), -1)[:, : -(-frames * new // old)]


@lru_cache(maxsize=32)
def _kernel(old: int, new: int) -> tuple[torch.Tensor, int]:
    """[new, 1, 2 * width + old] for coprime rates: for each of `new` samples of a step the weights of the old ones around it."""
    cutoff = min(old, new) * _ROLLOFF
    width = math.ceil(_CROSSINGS * old / cutoff)
    times = torch.arange(-width, width + old, dtype=torch.float64) / old - torch.arange(new, dtype=torch.float64)[:, None] / new
    places = (times * cutoff).clamp(-_CROSSINGS, _CROSSINGS)
    weights = torch.sinc(places) * torch.cos(places * (math.pi / _CROSSINGS / 2)) ** 2 * (cutoff / old)
    return weights.float()[:, None], width
