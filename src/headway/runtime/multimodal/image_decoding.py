"""Bytes of an image -> RGB, within limits. Nothing is decoded before its header says how large it is."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Final

from PIL import Image, UnidentifiedImageError

from headway.runtime.tasks.media import UnreadableMedia

FORMATS: Final = ("PNG", "JPEG", "WEBP")
MAX_SOURCE_PIXELS: Final = 64 << 20  # a camera's largest pictures; 256 MiB while they are decoded
MAX_REQUEST_PIXELS: Final = 8 * MAX_SOURCE_PIXELS  # seconds of decoding: 2,048 files of 10 kB could have a hundred times as many
MAX_ASPECT: Final = 200  # how much longer than wide: the short side is enlarged to what the model sees, and the long one with it

# Pillow's own guard only warns below twice its limit; ours refuses, and is lower.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
ToRgb = Callable[[Image.Image], Image.Image]


class PixelBudget:
    """What the images of one request may have together."""

    def __init__(self) -> None:
        self._left = MAX_REQUEST_PIXELS

    def take(self, pixels: int) -> None:
        """Raises UnreadableMedia for what is more than is left; smaller ones may still fit."""
        if pixels > self._left:
            raise UnreadableMedia(f"has {pixels} pixels, more than is left of the {MAX_REQUEST_PIXELS} that the images of one request may have")
        self._left -= pixels


def decode_image(data: bytes, to_rgb: ToRgb, budget: PixelBudget) -> Image.Image:
    """The first frame of a PNG, JPEG or WebP image; what cameras note about its orientation is not applied.

    Raises UnreadableMedia.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _check_size(*image.size)
            budget.take(image.width * image.height)
            image.load()
            return to_rgb(image)
    except UnreadableMedia:
        raise
    except UnidentifiedImageError:
        raise UnreadableMedia("is no PNG, JPEG or WebP image") from None
    except Image.DecompressionBombError:
        raise UnreadableMedia(f"is an image of more than {MAX_SOURCE_PIXELS} pixels, which is the limit") from None
    except Exception as error:  # foreign bytes: decoders raise anything
        raise UnreadableMedia(f"is a broken image: its pixels cannot be decoded ({type(error).__name__})") from None


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_SOURCE_PIXELS:
        raise UnreadableMedia(f"is an image of {width} x {height} pixels, the limit is {MAX_SOURCE_PIXELS} pixels")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise UnreadableMedia(f"is an image of {width} x {height} pixels: one side is more than {MAX_ASPECT} times the other")


def on_white(image: Image.Image) -> Image.Image:
    """What is transparent becomes white, as the image processors of transformers 5 do it."""
    if "A" not in image.getbands() and image.info.get("transparency") is None:
        return image.convert("RGB")
    own = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", own.size, (255, 255, 255, 255)), own).convert("RGB")


def without_alpha(image: Image.Image) -> Image.Image:
    """Transparency is dropped: a transparent pixel has the colour that it is stored with."""
    return image.convert("RGB")
