"""WAV files against scipy's reader, resampling against its definition."""

from __future__ import annotations

import io
import math
import struct
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.io import wavfile

from headway.runtime.multimodal.resampling import mono_at, resampled
from headway.runtime.multimodal.sound_rows import WINDOW, window_starts
from headway.runtime.multimodal.wav import RATES, Sound, decode_wav
from headway.runtime.tasks.media import UnreadableMedia
from tests.runtime.multimodal.sounds import FORMATS, tones, wav

GOOD = wav(tones(16_000, 0.1), 16_000)


def scaled(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """What scipy returns, within -1 and 1."""
    if values.dtype == np.uint8:
        return (values.astype(np.float64) - 128) / 128
    return values.astype(np.float64) if values.dtype == np.float32 else values / float(2 ** (8 * values.dtype.itemsize - 1))


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_samples_equal_those_that_scipy_reads(form: str, extensible: bool) -> None:
    for channels in (1, 2, 5):
        data = wav(tones(44_100, 0.05, channels), 44_100, form, extensible)
        rate, values = wavfile.read(io.BytesIO(data))
        found = decode_wav(data)
        assert found.rate == rate
        assert found.samples.dtype == torch.float32
        assert np.abs(found.samples.T.numpy() - scaled(values).reshape(-1, channels)).max() <= 2**-24


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is no WAV file"),
        (b"RIFF????AVI LIST", "is no WAV file"),
        (GOOD[:-10], "reaches beyond its end"),
        (GOOD[:60], "reaches beyond its end"),
        (GOOD[:24], "lacks its format or its data"),
        (GOOD[:24] + GOOD[24:] * 2, "two formats"),
        (GOOD.replace(b"data", b"junk"), "lacks its format or its data"),
        (wav(tones(16_000, 0), 16_000), "not a whole number of samples"),
        (wav(tones(16_000, 30.1), 16_000), "30.1 seconds, the limit is 30"),
        (wav(tones(16_000, 0.01, 9), 16_000), "9 channels"),
        (wav(tones(44_099, 0.01), 44_099), "44099 Hz; rates that are read: 8000, "),
        (wav(np.array([[0.0], [np.nan]]), 16_000, "f32"), "not all finite"),
        (GOOD.replace(struct.pack("<HHI", 1, 1, 16_000), struct.pack("<HHI", 7, 1, 16_000)), "format 7 with 16 bits"),
    ],
)  # fmt: skip
def test_files_that_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(UnreadableMedia, match=message):
        decode_wav(data)


def by_definition(samples: npt.NDArray[np.float64], old: int, new: int) -> npt.NDArray[np.float64]:
    """Each sample of the new rate as the sum that resampling.py describes, term by term."""
    cutoff = 0.99 * min(old, new)
    found = []
    for number in range(math.ceil(len(samples) * new / old)):
        places = cutoff * (np.arange(len(samples)) / old - number / new)
        near = np.abs(places) < 6
        found.append((samples[near] * cutoff / old * np.sinc(places[near]) * np.cos(np.pi * places[near] / 12) ** 2).sum())
    return np.array(found)


@pytest.mark.parametrize("new", [16_000, 48_000])
@pytest.mark.parametrize("old", RATES)
def test_resampling_is_what_it_says(old: int, new: int) -> None:
    samples = tones(old, 0.013)[:, 0]
    found = resampled(torch.from_numpy(samples.astype(np.float32))[None], old, new)[0].numpy()
    assert np.abs(found - (samples if old == new else by_definition(samples, old, new))).max() < 2e-6


def test_a_tone_stays_a_tone() -> None:
    for old, new in ((44_100, 16_000), (16_000, 48_000), (11_025, 48_000)):
        times = [np.arange(round(rate * 0.2)) / rate for rate in (old, new)]
        before, after = (np.sin(2 * np.pi * 700 * each) for each in times)
        found = mono_at(Sound(torch.from_numpy(np.stack([before, before])).float(), old), new).numpy()
        assert np.abs(found - after)[200:-200].max() < 2e-3


def test_channels_are_averaged() -> None:
    left = torch.linspace(-1, 1, 400)
    assert torch.equal(mono_at(Sound(torch.stack([left, -left]), 16_000), 16_000), torch.zeros(400))


def test_windows_cover_everything() -> None:
    assert window_starts(1) == window_starts(WINDOW) == [0]
    for samples in (WINDOW + 1, 2 * WINDOW, 2 * WINDOW + 7, 3 * WINDOW):
        starts = window_starts(samples)
        assert starts[0] == 0
        assert starts[-1] == samples - WINDOW
        assert max(b - a for a, b in pairwise(starts)) <= WINDOW
