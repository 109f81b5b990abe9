"""PromptImages: the tiles of a prompt's images, and where their rows stand among its tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.errors import RequestError

if TYPE_CHECKING:
    from headway.models.vision.tile_layout import TiledImage, Tiles


@dataclass(frozen=True, slots=True)
class Tile:
    """Its rows stand at the positions [start, start + rows). Equal digests mean equal pixels, and so equal rows."""

    start: int
    digest: bytes
    pixels: Tiles  # uint8 [3, side, side]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PromptImages:
    """In the order of their positions; each has `rows` rows."""

    tiles: tuple[Tile, ...]
    rows: int

    @property
    def nbytes(self) -> int:
        """Of pixels."""
        return sum(tile.pixels.nbytes for tile in self.tiles)

    def among(self, start: int, end: int) -> Iterator[Tile]:
        """Tiles that have a row at one of the positions [start, end)."""
        return (tile for tile in self.tiles if tile.start < end and tile.start + self.rows > start)

    def contents(self, block_size: int) -> Mapping[int, bytes]:
        """Number of a block of the prompt -> what its image tokens stand for: a token alone does not tell one image from another."""
        found: dict[int, bytes] = {}
        for tile in self.tiles:
            for block in range(tile.start // block_size, (tile.start + self.rows - 1) // block_size + 1):
                found[block] = found.get(block, b"") + tile.digest
        return found


def place_images(token_ids: Sequence[int], image_token: int, rows: int, images: Sequence[TiledImage]) -> PromptImages:
    """Raises RequestError (`image_tokens_mismatch`) where the tokens have another number of places than the tiles need."""
    places = [position for position, token in enumerate(token_ids) if token == image_token]
    pixels = [tile for image in images for tile in image.tiles]
    starts = places[::rows]
    fits = len(places) == len(pixels) * rows
    if not fits or any(places[at * rows + rows - 1] != start + rows - 1 for at, start in enumerate(starts)):
        raise RequestError(
            f"the prompt has {len(places)} image tokens, its images need {len(pixels)} times {rows} in a row", reason="image_tokens_mismatch",
            param="messages", fix="Do not write image tokens into texts.",
        )  # fmt: skip
    return PromptImages(
        tuple(Tile(start, hashlib.sha256(each.tobytes()).digest(), each) for start, each in zip(starts, pixels, strict=True)), rows
    )
