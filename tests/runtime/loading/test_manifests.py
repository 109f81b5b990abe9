"""Manifests and lists of digests of packages."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from headway.errors import PackageError
from headway.runtime.loading.manifests import FileList, check_inventory, check_sizes, read_file_list, read_sums

ONE, TWO = (sha256(text).hexdigest() for text in (b"one", b"two"))


def write(folder: Path, name: str, value: object) -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))


def test_a_manifest_maps_files_to_digests(tmp_path: Path) -> None:
    write(tmp_path, "M.json", {"files_sha256": {"a": ONE, "b/c": {"sha256": TWO}}, "files_bytes": {"a": 3}, "more": 1})
    listed, manifest = read_file_list(tmp_path, "M.json")
    assert (dict(listed.digests), dict(listed.sizes), manifest["more"]) == ({"a": ONE, "b/c": TWO}, {"a": 3}, 1)


@pytest.mark.parametrize(
    "files",
    [None, {}, [], {"a": "x"}, {"a": ONE.upper()}, {"a": None}, {"a": {"size": 3}}, {"../a": ONE}, {"/a": ONE}, {"b/../../a": ONE}, {"M.json": ONE}],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, files: object) -> None:
    write(tmp_path, "M.json", {"files_sha256": files})
    with pytest.raises(PackageError) as error:
        read_file_list(tmp_path, "M.json")
    assert error.value.reason == "manifest_invalid"


def test_a_digest_that_differs_is_named() -> None:
    listed = FileList("M.json", {"a": ONE, "b": ONE})
    listed.check({"a": ONE, "M.json": TWO}, complete=True)
    with pytest.raises(PackageError, match=r"a file hash does not match: b differ") as error:
        listed.check({"a": ONE, "b": TWO}, complete=True)
    assert error.value.reason == "hash_mismatch"
    assert error.value.param == "b"


def test_a_file_that_is_not_listed() -> None:
    listed = FileList("M.json", {"a": ONE})
    listed.check({"a": ONE, "c": TWO}, complete=False)
    with pytest.raises(PackageError, match="does not list c") as error:
        listed.check({"a": ONE, "c": TWO}, complete=True)
    assert error.value.reason == "unlisted_file"


def test_sums_are_read_in_both_modes(tmp_path: Path) -> None:
    assert read_sums(tmp_path) is None
    write(tmp_path, "SHA256SUMS", f"{ONE}  a\n{TWO} *./b c\n\n")
    found = read_sums(tmp_path)
    assert found is not None
    assert dict(found.digests) == {"a": ONE, "b c": TWO}
    write(tmp_path, "SHA256SUMS", "nonsense  a\n")
    with pytest.raises(PackageError, match="no SHA-256"):
        read_sums(tmp_path)


def test_sizes_tell_before_digests(tmp_path: Path) -> None:
    write(tmp_path, "a", "one")
    listed = FileList("M.json", {"a": ONE}, {"a": 3, "gone": 9})
    check_sizes(tmp_path, listed, ["a", "gone"])
    write(tmp_path, "a", "longer")
    with pytest.raises(PackageError, match="a file hash does not match"):
        check_sizes(tmp_path, listed, ["a"])


def test_an_inventory_is_exact(tmp_path: Path) -> None:
    listed = FileList("M.json", {"a": ONE, ".gitattributes": TWO})
    write(tmp_path, "M.json", {})
    with pytest.raises(PackageError, match="lacks a"):
        check_inventory(tmp_path, listed)
    write(tmp_path, "a", "one")
    (tmp_path / ".cache").mkdir()
    write(tmp_path / ".cache", "x", "a hub client's own")
    check_inventory(tmp_path, listed)
    write(tmp_path, "b", "two")
    with pytest.raises(PackageError, match="holds b") as error:
        check_inventory(tmp_path, listed)
    assert error.value.reason == "inventory_differs"
