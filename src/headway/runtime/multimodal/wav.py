"""WAV bytes -> samples: integer PCM of 8, 16, 24 or 32 bits and IEEE float32, one to eight channels.

Source of the layout: RIFF, and Microsoft's WAVEFORMATEX and WAVEFORMATEXTENSIBLE.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from headway.runtime.tasks.media import UnreadableMedia

MAX_SECONDS: Final = 30
MAX_CHANNELS: Final = 8
# Rates whose ratio to 16 and 48 kHz is made of small numbers: the kernel of a resampler grows with them.
RATES: Final = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 192_000)
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_SUBFORMAT_TAIL: Final = bytes.fromhex("000000001000800000aa00389b71")  # of the identifier whose first two bytes are the format


@dataclass(frozen=True, slots=True)
class Sound:
    """`samples` float32 [channels, frames], within -1 and 1 for integer formats; `rate` in Hz."""

    samples: torch.Tensor
    rate: int


def decode_wav(data: bytes) -> Sound:
    """Raises UnreadableMedia."""
    form, body = _chunks(data)
    code, channels, rate, _, block, bits = struct.unpack_from("<HHIIHH", form)
    if code == _EXTENSIBLE:
        if len(form) < 40 or form[26:40] != _SUBFORMAT_TAIL:
            raise UnreadableMedia("is a WAV file of an extended format that is not read")
        code = struct.unpack_from("<H", form, 24)[0]
    if (code, bits) not in {(_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32)}:
        raise UnreadableMedia(f"is a WAV file of format {code} with {bits} bits; 8, 16, 24 and 32 bit PCM and 32 bit float are read")
    if not 1 <= channels <= MAX_CHANNELS:
        raise UnreadableMedia(f"is a WAV file of {channels} channels, from 1 to {MAX_CHANNELS} are read")
    if rate not in RATES:
        raise UnreadableMedia(f"is a WAV file of {rate} Hz; rates that are read: {', '.join(map(str, RATES))}")
    if block != channels * bits // 8 or not body or len(body) % block:
        raise UnreadableMedia("is a broken WAV file: its data is not a whole number of samples")
    if len(body) // block > MAX_SECONDS * rate:
        raise UnreadableMedia(f"is a sound of {len(body) / block / rate:.1f} seconds, the limit is {MAX_SECONDS}")
    samples = torch.from_numpy(np.ascontiguousarray(_values(body, code, bits).reshape(-1, channels).T))
    if not bool(torch.isfinite(samples).all()):
        raise UnreadableMedia("is a WAV file whose samples are not all finite")
    return Sound(samples, rate)


def _values(body: bytes, code: int, bits: int) -> npt.NDArray[np.float32]:
    """Interleaved samples as float32."""
    if code == _FLOAT:
        return np.frombuffer(body, "<f4").astype(np.float32)
    if bits == 8:  # the only unsigned one
        return (np.frombuffer(body, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(128)
    wide = np.zeros((len(body) // (bits // 8), 4), np.uint8)
    wide[:, 4 - bits // 8 :] = np.frombuffer(body, np.uint8).reshape(len(wide), -1)
    return (wide.view("<i4")[:, 0] / np.float64(1 << 31)).astype(np.float32)


def _chunks(data: bytes) -> tuple[bytes, bytes]:
    """Format and samples."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise UnreadableMedia("is no WAV file")
    found: dict[bytes, bytes] = {}
    place = 12
    while place + 8 <= len(data):
        kind, size = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        if place + 8 + size > len(data):
            raise UnreadableMedia("is a broken WAV file: a part of it reaches beyond its end")
        if kind in (b"fmt ", b"data"):
            if kind in found:
                raise UnreadableMedia("is a WAV file with two formats or two lots of data, which is not read")
            found[kind] = data[place + 8 : place + 8 + size]
        place += 8 + size + (size & 1)
    if len(found.get(b"fmt ", b"")) < 16 or b"data" not in found:
        raise UnreadableMedia("is a broken WAV file: it lacks its format or its data")
    return found[b"fmt "], found[b"data"]
