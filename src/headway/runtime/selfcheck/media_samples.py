"""The image and the sound of the self-check: the same bytes always."""

from __future__ import annotations

import io
import math
import struct
import wave
import zlib
from collections.abc import Mapping
from typing import Final

from headway.wire.embeddings import Media

_WIDTH, _HEIGHT = 48, 40  # wider than high, so that sides that are taken for each other show
_RATE, _FRAMES = 16_000, 8_000


def _png() -> bytes:
    """Gradients in red and green, squares in blue. Stored without compression: other versions of zlib compress differently."""
    rows = b"".join(
        b"\0" + bytes(value for x in range(_WIDTH) for value in (x * 5, y * 6, 255 * ((x // 8 + y // 8) % 2))) for y in range(_HEIGHT)
    )
    parts = ((b"IHDR", struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )


def _wav() -> bytes:
    """Half a second of a tone that rises from 200 to 1200 Hz."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        turns = (200 * n / _RATE + 1000 * n * n / _RATE / _FRAMES / 2 for n in range(_FRAMES))
        file.writeframes(struct.pack(f"<{_FRAMES}h", *(round(9_000 * math.sin(2 * math.pi * turn)) for turn in turns)))
    return buffer.getvalue()


SAMPLES: Final[Mapping[str, Media]] = {"image": Media("image", _png()), "audio": Media("audio", _wav())}
