"""Tiles against the image processor of transformers, bit for bit; settings that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

from headway.errors import ArtifactError, ConfigError, HeadwayError, NotBuiltError
from headway.models.vision.image_text import image_text
from headway.models.vision.tile_layout import FILES, read_tile_layout
from tests.models.vision.tiny_vision import picture

SIZES = ((1, 1), (32, 32), (33, 31), (50, 70), (200, 20), (7, 900), (1000, 1), (1, 1000), (96, 96), (97, 95), (64, 40))
SETTINGS: tuple[dict[str, Any], ...] = (
    {"size": {"longest_edge": 96}, "max_image_size": {"longest_edge": 32}},
    {"size": {"longest_edge": 97}, "max_image_size": {"longest_edge": 32}, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]},
    {"size": {"longest_edge": 32}, "max_image_size": {"longest_edge": 32}, "do_normalize": False, "resample": 2},
    {"size": {"longest_edge": 70}, "max_image_size": {"longest_edge": 32}, "do_image_splitting": False, "do_pad": False},
    {"size": {"longest_edge": 512}, "max_image_size": {"longest_edge": 128}},
)


def _write(folder: Path, settings: dict[str, Any], name: str = FILES[1]) -> Path:
    (folder / name).write_text(json.dumps({"image_processor": settings} if name == FILES[0] else settings))
    return folder


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_tiles_equal_those_of_transformers(number: int, tmp_path: Path) -> None:
    settings = SETTINGS[number]
    side = settings["max_image_size"]["longest_edge"]
    oracle = Idefics3ImageProcessorPil(**settings)
    _write(tmp_path, oracle.to_dict(), FILES[number % 2])
    layout = read_tile_layout(tmp_path, side, {})
    for size in SIZES if side < 100 else ((30, 20),):
        image = picture(*size)
        want = oracle(image, return_row_col_info=True)
        found = layout.tiled(image)
        assert (found.rows, found.columns) == (want["rows"][0][0], want["cols"][0][0]), size
        assert np.array_equal(layout.seen(found.tiles), np.asarray(want["pixel_values"][0], dtype=np.float32)), size
        assert len(found.tiles) <= layout.most_tiles


def test_the_text_of_an_image_is_that_of_transformers(tmp_path: Path) -> None:
    from transformers.models.idefics3.processing_idefics3 import Idefics3Processor

    oracle = object.__new__(Idefics3Processor)
    oracle.fake_image_token, oracle.global_image_tag, oracle.image_token, oracle.image_seq_len = "<fake_token_around_image>", "<global-img>", "<image>", 5
    for rows, columns in ((0, 0), (1, 2), (3, 1), (4, 4)):
        assert image_text(rows, columns, 5) == oracle.replace_image_token({"rows": [[rows]], "cols": [[columns]]}, 0)


def test_changes_win_over_the_file(tmp_path: Path) -> None:
    _write(tmp_path, SETTINGS[0])
    assert len(read_tile_layout(tmp_path, 32, {"do_image_splitting": False}).tiled(picture(90, 90)).tiles) == 1
    assert len(read_tile_layout(tmp_path, 32, {"size": {"longest_edge": 64}}).tiled(picture(90, 90)).tiles) == 5


REFUSED: tuple[tuple[dict[str, Any], dict[str, Any], type[HeadwayError], str], ...] = (
    ({"max_image_size": {"longest_edge": 64}}, {}, ArtifactError, "invalid_processor_config"),
    ({"size": {"height": 3, "width": 3}}, {}, ArtifactError, "invalid_processor_config"),
    ({"do_resize": False}, {}, ArtifactError, "invalid_processor_config"),
    ({"do_convert_rgb": False}, {}, ArtifactError, "invalid_processor_config"),
    ({"resample": 99}, {}, ArtifactError, "invalid_processor_config"),
    ({"image_std": [0, 1, 1]}, {}, ArtifactError, "invalid_processor_config"),
    ({"image_mean": "x"}, {}, ArtifactError, "invalid_processor_config"),
    ({"rescale_factor": None, "image_mean": [1, 2]}, {}, ArtifactError, "invalid_processor_config"),
    ({}, {"size": {"longest_edge": 100_000}}, ConfigError, "invalid_mm_processor_kwargs"),
    ({}, {"do_image_splitting": "no"}, ConfigError, "invalid_mm_processor_kwargs"),
    ({}, {"max_image_size": {"longest_edge": 32}}, NotBuiltError, "not_built"),
)


@pytest.mark.parametrize(("stored", "changes", "kind", "reason"), REFUSED)
def test_settings_that_are_refused(stored: dict[str, Any], changes: dict[str, Any], kind: type[HeadwayError], reason: str, tmp_path: Path) -> None:
    _write(tmp_path, SETTINGS[0] | stored)
    with pytest.raises(kind) as refused:
        read_tile_layout(tmp_path, 32, changes)
    assert refused.value.reason == reason


def test_a_folder_without_a_processor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as refused:
        read_tile_layout(tmp_path, 32, {})
    assert refused.value.reason == "processor_missing"
