"""preprocessor_config.json, against the image processors of transformers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import transformers

from headway.errors import PackageError
from headway.runtime.multimodal.image_decoding import on_white
from headway.runtime.multimodal.image_layout import read_image_layout
from headway.runtime.tasks.media import UnreadableMedia
from tests.runtime.multimodal.pictures import picture

ORACLES = {"clip": transformers.CLIPImageProcessorPil, "siglip": transformers.SiglipImageProcessorPil}
SHAPES = ((50, 40), (40, 50), (7, 9), (32, 32), (199, 1), (33, 64))
CROP = {"do_center_crop": True, "crop_size": {"height": 32, "width": 32}}


@pytest.mark.parametrize(
    ("kind", "side", "config"),
    [
        ("clip", 224, {}),
        ("siglip", 224, {}),
        ("clip", 32, {"size": {"shortest_edge": 32}, **CROP}),
        ("clip", 32, {"size": 40, "crop_size": 32, "resample": 2}),
        ("clip", 32, {"size": {"shortest_edge": 20}, **CROP}),  # the middle reaches over the edges
        ("clip", 32, {"size": {"height": 37, "width": 35}, **CROP, "resample": 0}),
        ("clip", 32, {"do_resize": False, **CROP}),
        ("siglip", 32, {"size": {"height": 32, "width": 32}, "resample": 1, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4]}),
        ("siglip", 32, {"size": {"height": 32, "width": 32}, "resample": 5, "rescale_factor": 1 / 127.5, "do_normalize": False}),
        ("siglip", 32, {"size": {"height": 32, "width": 32}, "resample": 4, "do_rescale": False, "image_mean": 0.5, "image_std": 0.5}),
    ],
)  # fmt: skip
def test_pixels_equal_those_of_transformers(kind: Literal["clip", "siglip"], side: int, config: dict[str, Any]) -> None:
    layout = read_image_layout(config, kind, side)
    oracle = ORACLES[kind](**config)
    for seed, (width, height) in enumerate(SHAPES):
        for mode in ("RGB", "RGBA", "L"):
            image = picture(width, height, mode, seed)
            expected = oracle(image, return_tensors="np")["pixel_values"][0]
            found = layout.seen(layout.pixels(on_white(image)))
            assert found.shape == (3, side, side)
            assert found.dtype == np.float32
            assert np.abs(found - expected).max() <= 1e-6 * max(1.0, float(np.abs(expected).max()))


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        ("clip", {}, "must end at images of 32 x 32"),
        ("siglip", {"size": {"shortest_edge": 32}}, "must end at images of 32 x 32"),
        ("siglip", {"size": {"longest_edge": 32}}, "height and width, or shortest_edge"),
        ("siglip", {"size": {"height": 32, "width": "32"}}, "height and width, or shortest_edge"),
        ("siglip", {"size": {"height": 10**9, "width": 10**9}}, "from 1 to 4096"),
        ("clip", {"size": {"shortest_edge": 0}, **CROP}, "from 1 to 4096"),
        ("clip", {"size": {"shortest_edge": 32}, **CROP, "resample": 9}, "resample"),
        ("clip", {"size": {"shortest_edge": 32}, **CROP, "do_pad": True}, "do_pad"),
        ("clip", {"size": {"shortest_edge": 32}, **CROP, "image_mean": [0.5, 0.5]}, "three numbers each"),
        ("clip", {"size": {"shortest_edge": 32}, **CROP, "image_std": [0.5, 0.0, 0.5]}, "three numbers each"),
    ],
)  # fmt: skip
def test_settings_that_are_refused(kind: Literal["clip", "siglip"], config: dict[str, Any], message: str) -> None:
    with pytest.raises(PackageError, match=message) as refused:
        read_image_layout(config, kind, 32)
    assert refused.value.reason == "invalid_package"


def test_thin_images_do_not_become_huge() -> None:
    layout = read_image_layout({"size": {"shortest_edge": 1024}, "crop_size": 1024}, "clip", 1024)
    with pytest.raises(UnreadableMedia, match="1 x 199 pixels, too long and thin to be enlarged to 1024 x 203776"):
        layout.pixels(picture(1, 199))
