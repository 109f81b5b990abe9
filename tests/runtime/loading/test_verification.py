"""Digests, links, licences, and what a weight format needs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from headway.artifacts.resumable_download import file_sha256
from headway.errors import ArtifactError, PackageError
from headway.runtime.family import ModelSpec
from headway.runtime.loading.licence_policy import check_licence, is_restricted
from headway.runtime.loading.needs import needed_capabilities
from headway.runtime.loading.verification import Digests
from headway.runtime.package import Package
from tests.runtime.toy_plugins import CARD, WEIGHTS, tensor_file, write_toy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_toy(tmp_path / "toy")


def test_each_file_is_read_once(folder: Path) -> None:
    read: list[Path] = []

    def counted(path: Path) -> str:
        read.append(path)
        return file_sha256(path)

    digests = Digests(Package("toy", folder), counted)
    recorded = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (CARD, WEIGHTS)}
    digests.check_small(recorded)
    digests.check(recorded, [CARD, WEIGHTS])
    assert digests.of_all([WEIGHTS, CARD]) == recorded
    assert sorted(read) == [folder / WEIGHTS, folder / CARD]


def test_wrong_digests_name_the_file(folder: Path) -> None:
    with pytest.raises(ArtifactError, match=f"a file hash does not match: {CARD}") as caught:
        Digests(Package("toy", folder)).check_small({CARD: "0" * 64})
    assert caught.value.reason == "hash_mismatch"


def test_absent_files_and_links_that_leave(folder: Path, tmp_path: Path) -> None:
    digests = Digests(Package("toy", folder))
    with pytest.raises(PackageError, match="lacks absent"):
        digests.of("absent")
    outside = tmp_path / "secret"
    outside.write_text("x")
    (folder / "link").symlink_to(outside)
    with pytest.raises(PackageError, match="leads out of the package"):
        digests.of("link")


def test_a_package_of_one_file(folder: Path) -> None:
    assert Digests(Package("toy", folder / CARD)).of(CARD) == file_sha256(folder / CARD)


@pytest.mark.parametrize(
    ("identifier", "restricted"),
    [
        ("cc-by-nc-4.0", True),
        ("CC-BY-NC-SA-4.0", True),
        ("non-commercial", True),
        ("noncommercial", True),
        ("openrail", True),
        ("creativeml-openrail-m", True),
        ("bigscience-openrail++", True),
        ("acme-research-license", True),
        ("apache-2.0", False),
        ("mit", False),
        ("ncsa", False),
        ("cc-by-sa-4.0", False),
        ("bsd-3-clause", False),
        ("encumbered-not", False),
    ],
)
def test_restricted_licences(identifier: str, restricted: bool) -> None:
    assert is_restricted(identifier) is restricted
    if not restricted:
        check_licence(identifier, ())
        return
    check_licence(identifier, (identifier,))
    with pytest.raises(PackageError, match="a licence must be accepted"):
        check_licence(identifier, ("other",))


def test_no_licence_is_no_obstacle() -> None:
    check_licence(None, ())


@pytest.mark.parametrize(
    ("config", "dtype", "expected"),
    [
        ({}, "F32", ("lapack",)),
        ({}, "F8_E4M3", ("lapack", "fp8")),
        ({"quantization_config": {"quant_method": "fp8"}}, "BF16", ("lapack", "fp8")),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "F8_E4M3", ("lapack", "nvfp4")),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, "BF16", ("lapack", "fp8")),
        ({"quantization_config": "odd"}, "F32", ("lapack",)),
    ],
)
def test_what_a_weight_format_needs(folder: Path, config: dict[str, object], dtype: str, expected: tuple[str, ...]) -> None:
    (folder / "config.json").write_text(json.dumps(config))
    (folder / WEIGHTS).write_bytes(tensor_file(dtype))
    spec = ModelSpec(("embeddings",), 2, (CARD, WEIGHTS), 8, capabilities=("lapack",))
    assert needed_capabilities(Package("toy", folder), spec) == expected
