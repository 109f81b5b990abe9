"""The models file: YAML and JSON, every key checked, errors that name the entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.loading.models_file import MAX_BYTES, models_of, read_models_file


def test_yaml_and_json_with_all_keys(tmp_path: Path) -> None:
    fields = {
        "model": "owner/name", "revision": "a" * 40, "name": "guard", "family": "sequence", "device": "cuda:1", "engine": "native",
        "memory_budget_gib": 2, "options": {"max_scan_tokens": 5}, "enable_shared_context": True, "batch_window_ms": 0,
        "max_num_seqs": 4,
    }  # fmt: skip
    path = tmp_path / "models"
    path.write_text(json.dumps({"models": [fields, {"model": "x", "name": None, "device": None}]}))
    first, second = read_models_file(str(path))
    assert first == ModelEntry(**fields)
    assert second == ModelEntry("x")
    path.write_text("models:\n  - model: owner/name\n    options: {dtype: bfloat16}\n")
    assert read_models_file(str(path)) == (ModelEntry("owner/name", options={"dtype": "bfloat16"}),)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "must hold a mapping"),
        ({}, "models must be a non-empty list"),
        ({"models": []}, "models must be a non-empty list"),
        ({"models": [{"model": "a"}], "more": 1}, "unknown keys: more"),
        ({"models": [{"model": "a"}, "b"]}, "models[1] must be a mapping"),
        ({"models": [{"name": "a"}]}, "models[0] has no model"),
        ({"models": [{"model": None}]}, "models[0].model must be a non-empty text"),
        ({"models": [{"model": "a", "colour": 1}]}, "models[0] has unknown keys: colour"),
        ({"models": [{"model": "a", "options": [1]}]}, "models[0].options must be a mapping"),
        ({"models": [{"model": "a", "name": "n"}, {"model": "b", "name": "n"}]}, "models[1] and models[0] have the same name"),
        ({"models": [{"model": "a", "name": "n\nfake line of a log"}]}, "models[0].name must be a non-empty text without control characters"),
        ({"models": [{"model": "a", "max_num_seqs": 0}]}, "models[0].max_num_seqs must be a whole number"),
        ({"models": [{"model": "a", "max_num_seqs": True}]}, "models[0].max_num_seqs must be a whole number"),
        ({"models": [{"model": "a", "batch_window_ms": -1}]}, "models[0].batch_window_ms"),
        ({"models": [{"model": "a", "batch_window_ms": float("nan")}]}, "models[0].batch_window_ms"),
        ({"models": [{"model": "a", "memory_budget_gib": 0}]}, "models[0].memory_budget_gib"),
        ({"models": [{"model": "a", "enable_shared_context": "yes"}]}, "models[0].enable_shared_context must be true or false"),
        ({"models": [{"model": "a"}] * 257}, "the limit is 256"),
        ({"models": [{"model": "a", "profile": "exact"}]}, "profile was removed"),
        ({"models": [{"model": "a", "options": {"profile": "exact"}}]}, "profile was removed"),
        ({"models": [{"model": "a"}], "profile": "exact"}, "profile was removed"),
    ],
)
def test_what_is_wrong_is_named(content: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        models_of(content, "here")
    assert says in caught.value.message
    assert caught.value.reason == "models_file_invalid"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"models: [", "neither YAML nor JSON"),
        (b"\xff\xfe\x00", "neither YAML nor JSON"),
        (b"models: !!python/object/apply:os.system [x]", "neither YAML nor JSON"),
        (b"#" * (MAX_BYTES + 1), "more than"),
    ],
)
def test_files_that_are_no_models_files(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=says):
        read_models_file(str(path))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_models_file(str(tmp_path / "absent"))
