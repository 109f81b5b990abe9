"""JSON files that hold something else than is expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.artifacts.bounded_json import read_json_list, read_json_object
from headway.errors import ArtifactError


@pytest.mark.parametrize("raw", ["null", "5", "true", '"x"'])
def test_a_single_value_is_another_kind(tmp_path: Path, raw: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(raw)
    for read, expected in ((read_json_object, "object"), (read_json_list, "list")):
        with pytest.raises(ArtifactError, match=f"must hold a JSON {expected}") as caught:
            read(path)
        assert caught.value.reason == "invalid_json"


def test_depth_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[" * 64 + "]" * 64)
    read_json_list(path)
    path.write_text("[" * 65 + "]" * 65)
    with pytest.raises(ArtifactError, match="nests deeper than 64"):
        read_json_list(path)
