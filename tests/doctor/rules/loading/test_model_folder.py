"""What a file is instead of a model file."""

from __future__ import annotations

import pytest

from headway.doctor.rules.loading.model_folder import Damage, ModelFile


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        (ModelFile("model.safetensors", 135, None, "version https://git-lfs.example.test/spec/v1", ""), "pointer"),
        (ModelFile("model.safetensors", 135, None, "", ""), "pointer"),
        (ModelFile("model.gguf", 41873, None, "<!DOCTYPE html>", ""), "web page"),
        (ModelFile("model.safetensors", 100_000, 200_000, "", ""), "truncated"),
        (ModelFile("model.safetensors", 0, None, "", ""), "empty"),
        (ModelFile("model.safetensors", 200_000, 200_000, "", ""), None),
        (ModelFile("config.json", 663, None, "", ""), None),  # small files that are no weights are well
    ],
)
def test_damage(file: ModelFile, damage: Damage | None) -> None:
    assert file.damage == damage
