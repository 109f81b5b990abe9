"""preprocessor_config.json -> how an image becomes what the vision tower sees.

Source: the image processors of transformers 5.24 (`CLIPImageProcessor`, `SiglipImageProcessor`), their defaults included.
torchvision is not needed: Pillow resizes 8-bit pixels, as the processors' own Pillow variant does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

from headway.errors import PackageError
from headway.runtime.multimodal.image_decoding import MAX_SOURCE_PIXELS
from headway.runtime.tasks.media import UnreadableMedia

FILE: Final = "preprocessor_config.json"
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "clip": {
        "size": {"shortest_edge": 224}, "crop_size": 224, "do_center_crop": True,
        "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
    },
    "siglip": {
        "size": {"height": 224, "width": 224}, "do_center_crop": False, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
    },
}  # fmt: skip
_COMMON: Final[Mapping[str, Any]] = {"do_resize": True, "do_rescale": True, "do_normalize": True, "rescale_factor": 1 / 255, "resample": 3}

Pixels = npt.NDArray[np.uint8]  # [3, height, width]


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """`resize`: height and width, or the length of the short side, or None = as it is; `crop`: height and width of the middle.
    `table` [3, 256] float32: what the model sees of each value of each channel."""

    side: int
    resize: tuple[int, int] | int | None
    crop: tuple[int, int] | None
    resample: Image.Resampling
    table: npt.NDArray[np.float32]

    def pixels(self, image: Image.Image) -> Pixels:
        """RGB -> uint8 [3, side, side]. Raises UnreadableMedia for what would become too large on the way."""
        if self.resize is not None:
            height, width = self.resize if isinstance(self.resize, tuple) else _scaled(image.height, image.width, self.resize)
            if width * height > MAX_SOURCE_PIXELS:
                raise UnreadableMedia(f"is an image of {image.width} x {image.height} pixels, too long and thin to be enlarged to {width} x {height}")
            image = image.resize((width, height), self.resample)
        if self.crop is not None:  # beyond the edges there is black
            top, left = (image.height - self.crop[0]) // 2, (image.width - self.crop[1]) // 2
            image = image.crop((left, top, left + self.crop[1], top + self.crop[0]))
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))

    def seen(self, pixels: Pixels) -> npt.NDArray[np.float32]:
        """uint8 [3, side, side] -> float32, as the model wants it."""
        return np.stack([channel[plane] for channel, plane in zip(self.table, pixels, strict=True)])


def read_image_layout(config: Mapping[str, Any], kind: Literal["clip", "siglip"], side: int) -> ImageLayout:
    """`side`: height and width of the images that the vision tower was built for.

    Raises PackageError (`invalid_package`) for settings that are not built, or do not end at `side`.
    """
    given = {**_COMMON, **_DEFAULTS[kind], **{key: value for key, value in config.items() if value is not None}}
    if given.get("do_pad"):
        raise _refused("do_pad: padding is not built")
    resize = _size(given["size"]) if given["do_resize"] else None
    crop = _size(given["crop_size"], square=True) if given["do_center_crop"] else None
    if (crop if crop is not None else resize) != (side, side):
        raise _refused(f"size and crop_size must end at images of {side} x {side}, the size of the vision tower; found {given['size']!r:.80},"
                       f" {given.get('crop_size')!r:.80}")  # fmt: skip
    assert crop is None or isinstance(crop, tuple)
    try:
        resample = Image.Resampling(given["resample"])
    except ValueError:
        raise _refused(f"resample must be a number of Pillow's resampling filters, found {given['resample']!r:.40}") from None
    return ImageLayout(side, resize, crop, resample, _table(given))


def _scaled(height: int, width: int, short: int) -> tuple[int, int]:
    """The short side becomes `short`, the long one keeps the shape, rounded down."""
    return (short, int(short * width / height)) if height <= width else (int(short * height / width), short)


def _size(value: Any, square: bool = False) -> tuple[int, int] | int:
    found: Any = value
    if isinstance(value, Mapping):
        found = value["shortest_edge"] if set(value) == {"shortest_edge"} else (value.get("height"), value.get("width"))
    if square and isinstance(found, int):
        found = (found, found)
    sides = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(side, int) and not isinstance(side, bool) and 0 < side <= 4096 for side in sides):
        raise _refused(f"sizes must be height and width, or shortest_edge, from 1 to 4096 pixels; found {value!r:.80}")
    result: tuple[int, int] | int = found
    return result


def _table(given: Mapping[str, Any]) -> npt.NDArray[np.float32]:
    """Scaled in float64, then float32, as transformers does it."""
    values = np.arange(256, dtype=np.float64) * float(given["rescale_factor"]) if given["do_rescale"] else np.arange(256)
    scaled = values.astype(np.float32)
    if not given["do_normalize"]:
        return np.tile(scaled, (3, 1))
    mean, std = (np.asarray(given[name], dtype=np.float32) for name in ("image_mean", "image_std"))
    if mean.shape not in ((), (3,)) or std.shape not in ((), (3,)) or not (np.isfinite(mean).all() and (std > 0).all()):
        raise _refused(f"image_mean and image_std must be three numbers each, found {given['image_mean']!r:.60}, {given['image_std']!r:.60}")
    return np.ascontiguousarray((scaled - np.broadcast_to(mean, 3)[:, None]) / np.broadcast_to(std, 3)[:, None], dtype=np.float32)


def _refused(what: str) -> PackageError:
    return PackageError(f"{FILE}: {what}", reason="invalid_package", param=FILE, fix="Compare it with the model's original.")
