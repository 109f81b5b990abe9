"""Settings of an image processor -> how an image becomes tiles, squares that the tower sees.

As `Idefics3ImageProcessor` of transformers 5.24 (SmolVLM's is the same), its variant for Pillow: the image is enlarged or reduced to a longest
side, then to whole tiles, cut line by line, and the whole image follows as one more tile. Without splitting it is one tile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from headway.artifacts.bounded_json import read_json_object
from headway.errors import ArtifactError, ConfigError, NotBuiltError

FILES: Final = ("processor_config.json", "preprocessor_config.json")  # of transformers 5, and before
OWN_FIELDS: Final = ("do_image_splitting", "size")  # that --mm-processor-kwargs may change
_MOST_SIDE: Final = 4096  # the processor cuts what is larger after resizing; here it is refused
_DEFAULTS: Final[Mapping[str, Any]] = {
    "do_convert_rgb": True, "do_resize": True, "do_rescale": True, "do_normalize": True, "do_image_splitting": True, "resample": 1,
    "rescale_factor": 1 / 255, "size": {"longest_edge": 4 * 364}, "max_image_size": {"longest_edge": 364},
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
}  # fmt: skip

Tiles = npt.NDArray[np.uint8]  # [tiles, 3, side, side]


@dataclass(frozen=True, slots=True)
class TiledImage:
    """`rows` x `columns` tiles and the whole image behind them; 0 x 0 = the whole image alone."""

    tiles: Tiles
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class TileLayout:
    """`side`: pixels of a tile. `longest`: of the image after the first resizing. `table` [3, 256] float32: what the model sees of each value
    of each channel."""

    side: int
    longest: int
    splits: bool
    resample: Image.Resampling
    table: npt.NDArray[np.float32]

    @property
    def most_tiles(self) -> int:
        """Of one image of any shape."""
        return 1 + math.ceil((self.longest + 1) / self.side) ** 2 if self.splits else 1

    def tiled(self, image: Image.Image) -> TiledImage:
        """RGB -> its tiles."""
        image = self._resized(image, _first_size(*image.size, self.longest))
        if not self.splits:
            return TiledImage(_planes([self._resized(image, (self.side, self.side))]), 0, 0)
        image = self._resized(image, _whole_tiles(*image.size, self.side))
        columns, rows = image.width // self.side, image.height // self.side
        if rows == columns == 1:
            return TiledImage(_planes([image]), 0, 0)
        side = self.side
        parts = [image.crop((x * side, y * side, (x + 1) * side, (y + 1) * side)) for y in range(rows) for x in range(columns)]
        return TiledImage(_planes([*parts, self._resized(image, (side, side))]), rows, columns)

    def seen(self, tiles: Tiles) -> npt.NDArray[np.float32]:
        """uint8 [N, 3, side, side] -> float32, as the model wants it."""
        return np.stack([table[tiles[:, channel]] for channel, table in enumerate(self.table)], axis=1)

    def _resized(self, image: Image.Image, size: tuple[int, int]) -> Image.Image:
        return image.resize(size, self.resample)


def _planes(images: list[Image.Image]) -> Tiles:
    return np.ascontiguousarray(np.stack([np.asarray(image).transpose(2, 0, 1) for image in images]))


def _first_size(width: int, height: int, longest: int) -> tuple[int, int]:
    """Width and height with the given longer side; the shorter one is made even, upwards."""
    ratio = width / height
    if width >= height:
        width, height = longest, _even(int(longest / ratio))
    else:
        width, height = _even(int(longest * ratio)), longest
    return max(width, 1), max(height, 1)


def _even(size: int) -> int:
    return size + size % 2


def _whole_tiles(width: int, height: int, side: int) -> tuple[int, int]:
    """The longer side goes up to whole tiles, the shorter one with it and then up."""
    ratio = width / height
    if width >= height:
        width = math.ceil(width / side) * side
        return width, math.ceil(int(width / ratio) / side) * side
    height = math.ceil(height / side) * side
    return math.ceil(int(height * ratio) / side) * side, height


def read_tile_layout(folder: Path, side: int, changes: Mapping[str, Any]) -> TileLayout:
    """`side`: pixels of the images that the tower was built for; `changes`: --mm-processor-kwargs.

    Raises ArtifactError (`processor_missing`, `invalid_processor_config`), ConfigError (`invalid_mm_processor_kwargs`), NotBuiltError.
    """
    for name in changes:
        if name not in OWN_FIELDS:
            raise NotBuiltError(f"--mm-processor-kwargs {name!r:.60} is not built", param="mm_processor_kwargs", fix=f"Built: {', '.join(OWN_FIELDS)}.")
    place, stored = _stored(folder)
    try:
        return _layout({**_DEFAULTS, **{key: value for key, value in stored.items() if value is not None}, **changes}, side)
    except _Invalid as error:
        if error.field in changes:
            message = f"--mm-processor-kwargs: {error}"
            raise ConfigError(message, reason="invalid_mm_processor_kwargs", param="mm_processor_kwargs") from None
        raise ArtifactError(f"{place}: {error}", reason="invalid_processor_config", param=str(place), fix="Compare it with the model's original.") from None


class _Invalid(Exception):
    def __init__(self, field: str, expected: str, found: object):
        super().__init__(f"{field} must be {expected}, found {found!r:.80}")
        self.field = field


def _stored(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    for name in FILES:
        path = folder / name
        if path.is_file():
            found = read_json_object(path)
            inner = found.get("image_processor") if name == FILES[0] else found
            if isinstance(inner, Mapping):
                return path, inner
    raise ArtifactError(
        f"{folder} has no settings of an image processor: looked for {' and '.join(FILES)}", reason="processor_missing", param=str(folder),
        fix="Add the processor files of the model.",
    )  # fmt: skip


def _layout(given: Mapping[str, Any], side: int) -> TileLayout:
    for name in ("do_convert_rgb", "do_resize"):
        if given[name] is not True:
            raise _Invalid(name, "true", given[name])
    if (tile := _edge(given, "max_image_size")) != side:
        raise _Invalid("max_image_size", f"{side}, the size of the images of the tower", tile)
    if not isinstance(given["do_image_splitting"], bool):
        raise _Invalid("do_image_splitting", "true or false", given["do_image_splitting"])
    try:
        resample = Image.Resampling(given["resample"])
    except ValueError:
        raise _Invalid("resample", "a number of Pillow's resampling filters", given["resample"]) from None
    return TileLayout(side, _edge(given, "size"), given["do_image_splitting"], resample, _table(given))


def _edge(given: Mapping[str, Any], name: str) -> int:
    value = given[name]
    edge = value.get("longest_edge") if isinstance(value, Mapping) and set(value) == {"longest_edge"} else None
    if isinstance(edge, bool) or not isinstance(edge, int) or not 0 < edge <= _MOST_SIDE:
        raise _Invalid(name, f'{{"longest_edge": pixels}} with 1 to {_MOST_SIDE} pixels', value)
    return edge


def _table(given: Mapping[str, Any]) -> npt.NDArray[np.float32]:
    """Scaled in float64, then float32, as transformers does it."""
    factor = given["rescale_factor"]
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not math.isfinite(factor):
        raise _Invalid("rescale_factor", "a number", factor)
    values = (np.arange(256, dtype=np.float64) * factor if given["do_rescale"] else np.arange(256)).astype(np.float32)
    if not given["do_normalize"]:
        return np.tile(values, (3, 1))
    mean, std = (_three(given, name) for name in ("image_mean", "image_std"))
    if not (std > 0).all():
        raise _Invalid("image_std", "three positive numbers", given["image_std"])
    return np.ascontiguousarray((values - mean[:, None]) / std[:, None], dtype=np.float32)


def _three(given: Mapping[str, Any], name: str) -> npt.NDArray[np.float32]:
    value = given[name]
    numbers = value if isinstance(value, list) else [value] * 3
    if len(numbers) != 3 or any(isinstance(n, bool) or not isinstance(n, int | float) or not math.isfinite(n) for n in numbers):
        raise _Invalid(name, "three numbers", value)
    return np.asarray(numbers, dtype=np.float32)
