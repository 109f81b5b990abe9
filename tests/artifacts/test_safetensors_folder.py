from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.numpy import save_file

from headway.artifacts.safetensors_folder import INDEX, read_weight_files
from headway.errors import ArtifactError
from tests.artifacts.model_files import llama_tensors, write_folder

SECOND = "model-00002-of-00002.safetensors"


def _refused(folder: Path) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        read_weight_files(folder)
    return caught.value


def test_one_file_and_shards_give_the_same_tensors(tmp_path: Path) -> None:
    one = read_weight_files(write_folder(tmp_path / "one"))
    two = read_weight_files(write_folder(tmp_path / "two", shards=2))
    assert one.tensors.keys() == two.tensors.keys() == llama_tensors().keys()
    assert [path.name for path in two.files] == ["model-00001-of-00002.safetensors", SECOND]


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, shards=2)
    (folder / SECOND).unlink()
    error = _refused(folder)
    assert error.reason == "missing_shards"
    assert SECOND in error.message
    assert "incomplete download" in error.message


def test_a_dangling_link_and_a_directory_are_missing_shards(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, shards=2)
    (folder / SECOND).unlink()
    (folder / SECOND).symlink_to(tmp_path / "blob")
    assert "link to nothing" in _refused(folder).message
    (folder / SECOND).unlink()
    (folder / SECOND).mkdir()
    assert "a directory" in _refused(folder).message


def test_a_shard_that_lacks_an_assigned_tensor_is_named_with_the_tensor(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, shards=2)
    save_file({"other": llama_tensors()["model.norm.weight"]}, folder / SECOND)
    error = _refused(folder)
    assert error.reason == "tensor_not_in_shard"
    assert SECOND in error.message
    assert "model." in error.message


def test_one_pointer_shard_beside_a_good_one(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, shards=2)
    (folder / SECOND).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    error = _refused(folder)
    assert error.reason == "lfs_pointer"
    assert SECOND in error.message


@pytest.mark.parametrize("shard", ["../model.safetensors", "/etc/passwd", "a\\b.safetensors", "x.bin", 5, None])
def test_an_index_cannot_reach_outside_its_folder(tmp_path: Path, shard: object) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": shard}}))
    assert _refused(tmp_path).reason == "index_invalid"


@pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {}}'])
def test_an_index_without_a_map_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / INDEX).write_text(content)
    assert _refused(tmp_path).reason == "index_invalid"


def test_numbered_files_without_an_index_must_be_all_there(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, shards=3)
    (folder / INDEX).unlink()
    assert read_weight_files(folder).tensors.keys() == llama_tensors().keys()
    (folder / "model-00002-of-00003.safetensors").unlink()
    assert "model-00002-of-00003.safetensors" in _refused(folder).message


def test_consolidated_duplicates_are_left_out(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, shards=2)
    save_file(llama_tensors(), folder / "consolidated.safetensors")
    files = read_weight_files(folder)
    assert files.ignored == ("consolidated.safetensors",)
    assert len(files.files) == 2


def test_pickled_weights_are_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    error = _refused(tmp_path)
    assert error.reason == "unsafe_weights"
    assert "pytorch_model.bin" in error.message
    assert "save_pretrained" in (error.fix or "")


def test_an_adapter_and_an_empty_folder_have_their_own_reasons(tmp_path: Path) -> None:
    assert _refused(tmp_path).reason == "no_weights"
    (tmp_path / "adapter_config.json").write_text("{}")
    assert _refused(tmp_path).reason == "adapter_only"
