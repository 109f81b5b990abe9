"""Pictures for tests, drawn from a seed."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

_CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}


def picture(width: int, height: int, mode: str = "RGB", seed: int = 0) -> Image.Image:
    """Noise over a gradient."""
    chance = np.random.default_rng(seed)
    channels = _CHANNELS[mode]
    ramp = np.linspace(0, 200, width)[None, :, None] * np.linspace(1, 0.3, height)[:, None, None]
    values = (ramp + chance.integers(0, 56, (height, width, channels))).astype(np.uint8)
    return Image.fromarray(values[..., 0] if channels == 1 else values)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def png(width: int, height: int, mode: str = "RGB", seed: int = 0) -> bytes:
    return encoded(picture(width, height, mode, seed))


def png_of_zeros(width: int, height: int) -> bytes:
    """A grey PNG whose rows are never in memory all at once: 1 bit for each pixel, compressed a thousandfold."""
    row = b"\0" * (1 + (width + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join([packer.compress(row) for _ in range(height)]) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)), (b"IDAT", data), (b"IEND", b""))
    )
