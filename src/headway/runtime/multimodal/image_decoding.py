"""Bytes of an image -> RGB, within the limits of an embedding request. How they are read: `models.vision.image_decoding`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PIL import Image

from headway.models.vision.image_decoding import MAX_PIXELS, PixelBudget, UnreadableImage, decoded, refuse_large
from headway.models.vision.image_decoding import on_white as on_white
from headway.runtime.tasks.media import UnreadableMedia

FORMATS: Final = ("PNG", "JPEG", "WEBP")
MAX_SOURCE_PIXELS: Final = MAX_PIXELS
MAX_REQUEST_PIXELS: Final = 8 * MAX_SOURCE_PIXELS  # seconds of decoding: 2,048 files of 10 kB could have a hundred times as many
MAX_ASPECT: Final = 200  # how much longer than wide: the short side is enlarged to what the model sees, and the long one with it

ToRgb = Callable[[Image.Image], Image.Image]


def request_budget() -> PixelBudget:
    """Of one request."""
    return PixelBudget(MAX_REQUEST_PIXELS)


def decode_image(data: bytes, to_rgb: ToRgb, budget: PixelBudget) -> Image.Image:
    """The first frame of a PNG, JPEG or WebP image; what cameras note about its orientation is not applied.

    Raises UnreadableMedia.
    """

    def check(image: Image.Image) -> None:
        refuse_large(image)
        if max(image.size) > MAX_ASPECT * min(image.size):
            raise UnreadableImage(f"is an image of {image.width} x {image.height} pixels: one side is more than {MAX_ASPECT} times the other")
        budget.take(image.width * image.height)

    try:
        return decoded(data, FORMATS, check, to_rgb)
    except UnreadableImage as error:
        raise UnreadableMedia(str(error)) from None


def without_alpha(image: Image.Image) -> Image.Image:
    """Transparency is dropped: a transparent pixel has the colour that it is stored with."""
    return image.convert("RGB")
