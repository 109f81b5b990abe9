"""Packages that are recognised and refused by name."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from headway.errors import HeadwayError
from headway.runtime.family import FAMILIES_GROUP
from headway.runtime.package import Package
from headway.runtime.readers.refused.family import RefusedDecisionFamily

CASES: list[tuple[dict[str, Any], str]] = [
    ({"adapter_config.json": {}, "schema_config.json": {"task": "schema_candidate_classification_v2"}}, "is a Bespoke Nimble package"),
    ({"joint_head_config.json": {"heads": 4}, "joint_head.safetensors": {}, "config.json": {}}, "is a Clef package"),
    ({"adapter_config.json": {}, "lev_release.json": {}}, "is a Lev package"),
    ({"decision_config.json": {"codes": ["A"]}, "readout.safetensors": {}, "config.json": {}}, "is a pplx-decider package"),
    ({"calibration.json": {"T": 1.0}, "config.json": {"model_type": "lfm2_vl"}}, "layout not published: .*Liquid d1"),
]


def _write(folder: Path, files: dict[str, Any]) -> Package:
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return Package("x", folder)


@pytest.mark.parametrize(("files", "match"), CASES)
def test_the_refusal_says_what_the_package_is(tmp_path: Path, files: dict[str, Any], match: str) -> None:
    package = _write(tmp_path, files)
    found = [point.name for point in entry_points(group=FAMILIES_GROUP) if point.load()().detect(package)]
    assert found == ["refused_decision"]
    with pytest.raises(HeadwayError, match=match):
        RefusedDecisionFamily().describe(package)


@pytest.mark.parametrize(
    "files",
    [
        {"adapter_config.json": {}, "schema_config.json": {"task": "another"}},
        {"calibration.json": {}, "config.json": {"model_type": "qwen3"}},
        {"adapter_config.json": [], "schema_config.json": []},
    ],
)
def test_others_are_not_recognised(tmp_path: Path, files: dict[str, Any]) -> None:
    assert not RefusedDecisionFamily().detect(_write(tmp_path, files))
