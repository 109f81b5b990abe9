"""Images of a request -> rows: pixels in the payload, a digest of the bytes that were sent in the detail."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from headway.runtime.multimodal.image_decoding import MAX_SOURCE_PIXELS, ToRgb, decode_image, request_budget
from headway.runtime.multimodal.image_layout import ImageLayout, Pixels
from headway.runtime.row import Row
from headway.runtime.tasks.media import MediaLimits, ReadMedia
from headway.wire.embeddings import MAX_MEDIA_BYTES

IMAGE_READOUT: Final = "image"


@dataclass(frozen=True, slots=True)
class ImageReader:
    """`cost`: of one image, in tokens of the vision tower."""

    layout: ImageLayout
    cost: int
    to_rgb: ToRgb

    @property
    def limits(self) -> MediaLimits:
        card = {"image_max_bytes": MAX_MEDIA_BYTES, "image_source_max_pixels": MAX_SOURCE_PIXELS, "image_max_pixels": self.layout.side**2}
        return MediaLimits(3 * self.layout.side**2, card)

    def for_request(self) -> ReadMedia:
        budget = request_budget()
        return lambda data: image_row(digest_of(data), self.layout.pixels(decode_image(data, self.to_rgb, budget)), self.cost)


def image_row(digest: str, pixels: Pixels, cost: int) -> Row:
    return Row((), IMAGE_READOUT, detail=digest, payload=pixels, extra_cost=cost)


def digest_of(data: bytes) -> str:
    """What makes two media inputs of one model equal."""
    return blake2b(data, digest_size=16).hexdigest()
