"""ImageReader: bytes of images -> tiles, and a prompt's text -> one that has their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from headway.engine.images.held_pixels import HeldPixels
from headway.engine.images.prompt_images import PromptImages, place_images
from headway.errors import RequestError
from headway.models.vision.image_decoding import MAX_PIXELS, PixelBudget, UnreadableImage, decode_image
from headway.models.vision.image_text import IMAGE, image_text
from headway.models.vision.tile_layout import TiledImage, TileLayout

MAX_IMAGE_BYTES: Final = 16 << 20  # as it was sent, decoded from base64
_REQUEST_PIXELS: Final = 2 * MAX_PIXELS
_HELD_BYTES: Final = 512 << 20  # of pixels in all requests: 40 images of 17 tiles of 512 x 512


class ImageReader:
    """What a loaded model says of images. `thread` runs what takes long, one request after the other: a decoded image may have 256 MiB.

    Everything but `thread` is for that thread; nothing is shared between calls.
    """

    def __init__(self, layout: TileLayout, tile_rows: int, image_token: int, most_images: int):
        self.layout = layout
        self.tile_rows = tile_rows
        self.image_token = image_token
        self.most_images = most_images
        self.most_bytes = MAX_IMAGE_BYTES
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="images")
        self._held = HeldPixels(_HELD_BYTES)

    def read(self, images: Sequence[tuple[str, bytes]]) -> list[TiledImage]:
        """`images`: the place of each in its request, and its file. Raises RequestError (`invalid_image`)."""
        budget = PixelBudget(_REQUEST_PIXELS)
        return [self._tiled(place, data, budget) for place, data in images]

    def _tiled(self, place: str, data: bytes, budget: PixelBudget) -> TiledImage:
        try:
            return self.layout.tiled(decode_image(data, budget))
        except UnreadableImage as error:
            raise RequestError(f"the image in {place} {error}", reason="invalid_image", param=place) from None

    def expanded(self, text: str, images: Sequence[TiledImage]) -> str:
        """`text` with the tokens of the images in the places of its image marks. Raises RequestError (`image_tokens_mismatch`)."""
        parts = text.split(IMAGE)
        if len(parts) - 1 != len(images):
            raise RequestError(
                f"the chat template put {len(parts) - 1} image marks into the prompt, the messages hold {len(images)} images",
                reason="image_tokens_mismatch", param="messages", fix=f"Use a template that writes {IMAGE} for every part of type image.",
            )  # fmt: skip
        shown = [image_text(each.rows, each.columns, self.tile_rows) for each in images]
        return "".join(part for pair in zip(parts, [*shown, ""], strict=True) for part in pair)

    def placed(self, token_ids: Sequence[int], images: Sequence[TiledImage]) -> PromptImages:
        """Raises RequestError (`image_tokens_mismatch`), QueueFullError (`images_full`)."""
        return self._held.hold(place_images(token_ids, self.image_token, self.tile_rows, images))
