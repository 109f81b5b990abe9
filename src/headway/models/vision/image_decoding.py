"""Bytes from outside -> RGB pixels, within limits. Nothing is decoded before its header says how large it is."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF")
MAX_PIXELS: Final = 64 << 20  # a camera's largest pictures; 256 MiB while they are decoded

# Pillow's own guard only warns below twice its limit; ours refuses, and is lower.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
_ORIENTATION: Final = 0x0112
_JPEG: Final = ("JPEG", "MPO")  # MPO: a JPEG with more pictures behind the first, as phones make them
_SCAN: Final = b"\xff\xda"  # in the pixels themselves no such bytes can be
_MOST_SCANS: Final = 40  # progressive files have about 10; each goes over all pixels and may be of 100 bytes
_NAMES: Final = {"WEBP": "WebP"}


class UnreadableImage(Exception):
    """An image that cannot be used. The message completes "the image ..." and holds nothing of its content."""


class PixelBudget:
    """What the images of one request may have together."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def take(self, pixels: int) -> None:
        """Raises UnreadableImage for what is more than is left; smaller ones may still fit."""
        if pixels > self._left:
            raise UnreadableImage(f"has {pixels} pixels, more than is left of the {self._most} that the images of one request may have")
        self._left -= pixels


def decoded(data: bytes, formats: Sequence[str], check: Callable[[Image.Image], None], to_rgb: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """`check` sees what the header says before any pixel is decoded, and raises UnreadableImage. Raises UnreadableImage."""
    try:
        with Image.open(io.BytesIO(data), formats=tuple(formats)) as image:
            check(image)
            if image.format in _JPEG and (scans := data.count(_SCAN)) > _MOST_SCANS:
                raise UnreadableImage(f"is a JPEG image of {scans} scans, the limit is {_MOST_SCANS}")
            image.load()
            return to_rgb(image)
    except UnreadableImage:
        raise
    except UnidentifiedImageError:
        names = [_NAMES.get(name, name) for name in formats]
        raise UnreadableImage(f"is no {', '.join(names[:-1])} or {names[-1]} image") from None
    except Image.DecompressionBombError:
        raise UnreadableImage(f"is an image of more than {MAX_PIXELS} pixels, which is the limit") from None
    except Exception as error:  # foreign bytes: decoders raise anything
        raise UnreadableImage(f"is a broken image: its pixels cannot be decoded ({type(error).__name__})") from None


def refuse_large(image: Image.Image) -> None:
    """Raises UnreadableImage for more than MAX_PIXELS."""
    if image.width * image.height > MAX_PIXELS:
        raise UnreadableImage(f"is an image of {image.width} x {image.height} pixels, the limit is {MAX_PIXELS} pixels")


def decode_image(data: bytes, budget: PixelBudget) -> Image.Image:
    """A PNG, JPEG, WebP or GIF image of one frame (of pictures in a JPEG the first), upright as its camera noted, on white where it is
    transparent. Raises UnreadableImage."""

    def check(image: Image.Image) -> None:
        refuse_large(image)
        if image.format not in _JPEG and getattr(image, "is_animated", False):
            raise UnreadableImage("has several frames; one is the limit")
        budget.take(image.width * image.height)

    return decoded(data, FORMATS, check, _upright)


def _upright(image: Image.Image) -> Image.Image:
    turned = ImageOps.exif_transpose(image) if image.getexif().get(_ORIENTATION, 1) != 1 else image
    return on_white(_eight_bits(turned))


def _eight_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 bits, of which Pillow would keep the values up to 255 and make all others white."""
    if not image.mode.startswith("I"):
        return image
    grey = np.clip(np.asarray(image).astype(np.int64), 0, 65535)
    return Image.fromarray(((grey * 255 + 32767) // 65535).astype(np.uint8))


def on_white(image: Image.Image) -> Image.Image:
    """What is transparent becomes white, as the image processors of transformers 5 do it."""
    if "A" not in image.getbands() and image.info.get("transparency") is None:
        return image.convert("RGB")
    own = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", own.size, (255, 255, 255, 255)), own).convert("RGB")
