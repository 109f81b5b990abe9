"""Tokenizers and configurations from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.artifacts import resolve
from headway.artifacts.small_files import other_config, tokenizer_path
from headway.errors import ArtifactError
from tests.artifacts.loopback_hub import COMMIT, REPO
from tests.artifacts.loopback_server import Loopback

pytestmark = pytest.mark.usefixtures("hub_environment")


def test_of_a_hub_repository_only_the_small_files_are_fetched(
    served: Loopback, files: dict[str, bytes], request: pytest.FixtureRequest
) -> None:
    folder = Path(tokenizer_path(REPO))
    names = {path.name for path in folder.iterdir()}
    assert "tokenizer.json" in names
    assert not any(name.endswith((".safetensors", ".bin")) for name in names)
    request.getfixturevalue("no_connections")
    assert tokenizer_path(REPO, revision=COMMIT) == str(folder)
    assert other_config(REPO)["architectures"] == ["LlamaForCausalLM"]


def test_offline_and_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ArtifactError) as caught:
        tokenizer_path(REPO)
    assert caught.value.reason == "offline_not_cached"


def test_paths_and_short_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokenizer_path(str(tmp_path)) == str(tmp_path)
    monkeypatch.setattr(resolve, "fetch", lambda model, cache, progress: Path("cache") / model.name)
    assert tokenizer_path("smollm2-135m-instruct") == str(Path("cache") / "smollm2-135m-instruct")
    with pytest.raises(ArtifactError) as caught:
        tokenizer_path("gemma3-270m")
    assert caught.value.reason == "licence_not_accepted"
    with pytest.raises(ArtifactError) as caught:
        tokenizer_path("smollm2-135m-instrukt")
    assert caught.value.reason == "unknown_model"


def test_a_configuration_from_a_folder_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert other_config(str(tmp_path)) == {"model_type": "llama"}
    assert other_config(str(tmp_path / "config.json")) == {"model_type": "llama"}
    (tmp_path / "config.json").unlink()
    with pytest.raises(ArtifactError, match=r"config\.json"):
        other_config(str(tmp_path))
