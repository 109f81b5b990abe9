"""Sounds for tests, and WAV files of every kind that is read."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

FORMATS = ("u8", "i16", "i24", "i32", "f32")


def tones(rate: int, seconds: float, channels: int = 1, seed: int = 0) -> npt.NDArray[np.float64]:
    """[frames, channels]: some tones below 3 kHz, and a little noise."""
    chance = np.random.default_rng(seed)
    times = np.arange(round(rate * seconds))[:, None] / rate
    pitches = chance.uniform(100, 3000, (4, channels))
    found: npt.NDArray[np.float64] = sum(0.15 * np.sin(2 * np.pi * pitch * times) for pitch in pitches) + chance.normal(0, 0.01, (len(times), channels))
    return found


def wav(samples: npt.NDArray[np.float64], rate: int, form: str = "i16", extensible: bool = False) -> bytes:
    """`samples` [frames, channels] within -1 and 1."""
    bits = int(form[1:])
    if form == "f32":
        body = samples.astype("<f4").tobytes()
    elif form == "u8":
        body = np.round(samples * 127 + 128).astype(np.uint8).tobytes()
    else:
        wide = np.round(samples * (2 ** (bits - 1) - 1)).astype("<i4")
        body = wide.view(np.uint8).reshape(*wide.shape, 4)[..., : bits // 8].tobytes()
    channels = samples.shape[1]
    code = 3 if form == "f32" else 1
    head = struct.pack("<HHIIHH", 0xFFFE if extensible else code, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits)
    if extensible:
        head += struct.pack("<HHIH", 22, bits, 0, code) + bytes.fromhex("000000001000800000aa00389b71")
    chunks = [(b"LIST", b"odd"), (b"fmt ", head), (b"data", body)]
    parts = b"".join(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts
