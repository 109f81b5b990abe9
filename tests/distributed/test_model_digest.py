"""Files of a model are told apart by size and by pieces of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.distributed.model_digest import model_digest
from headway.errors import ArtifactError


def test_a_changed_beginning_end_or_size_shows(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    content = bytes(5 << 20)
    file.write_bytes(content)
    (tmp_path / "notes.md").write_text("not of the model")
    (tmp_path / "config.json").write_text("{}")
    digests = [model_digest(tmp_path)]
    assert sorted(digests[0]) == ["config.json", "model.safetensors"]
    for changed in (b"x" + content[1:], content[:-1] + b"x", content + b"\0"):
        file.write_bytes(changed)
        digests.append(model_digest(tmp_path))
    assert len({found["model.safetensors"] for found in digests}) == 4
    assert len({found["config.json"] for found in digests}) == 1
    assert list(model_digest(file)) == ["model.safetensors"]


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ArtifactError) as caught:
            model_digest(place)
        assert caught.value.reason == "model_missing"
