from __future__ import annotations

from pathlib import Path

import pytest

from headway.artifacts.reference import Reference, parse_reference
from headway.errors import ArtifactError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("smollm2-135m-instruct", Reference("registry", "smollm2-135m-instruct")),
        ("owner/name", Reference("hub", "owner/name")),
        ("owner/name@v1.0", Reference("hub", "owner/name", "v1.0")),
        ("owner/na-me_1.5@refs/pr/3", Reference("hub", "owner/na-me_1.5", "refs/pr/3")),
        ("owner/name:Q4_K_M", Reference("hub", "owner/name", None, "Q4_K_M")),
        ("owner/name:Q4_K_M@main", Reference("hub", "owner/name", "main", "Q4_K_M")),
        (" owner/name\n", Reference("hub", "owner/name")),
    ],
)
def test_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, wanted: Reference) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_reference(text) == wanted


def test_what_is_on_disk_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("smollm2-135m-instruct", "owner/name", "m.gguf"):
        (tmp_path / name).mkdir(parents=True)
        assert parse_reference(name).kind == "path"


def test_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_reference("o/n", revision="r").revision == "r"
    assert parse_reference("o/n@r", revision="r").revision == "r"
    for text in ("o/n@other", "lid-176"):
        with pytest.raises(ArtifactError) as caught:
            parse_reference(text, revision="r")
        assert caught.value.reason == "revision_conflict"


@pytest.mark.parametrize(
    ("text", "reason", "says"),
    [
        ("smollm2-135m-instuct", "unknown_model", "Did you mean smollm2-135m-instruct?"),
        ("SmolLM2-135M-Instruct", "wrong_case", "Name smollm2-135m-instruct"),
        ("SmolLM3-135M-Instruct", "unknown_model", "Did you mean smollm2-135m-instruct?"),
        ("./Model.gguf", "wrong_case", "Name model.gguf"),
        ("./MODELS/tiny/Qwen.gguf", "wrong_case", "Name models/Tiny/qwen.gguf"),
        ("zzz", "unknown_model", "Short names are smollm2-135m-instruct"),
        ("", "unknown_model", "expected a model"),
        ("a\0b", "unknown_model", "expected a model"),
        ("x" * 5000, "unknown_model", "expected a model"),
        ("./nothing", "missing_file", "does not exist"),
        ("/nowhere/at/all", "missing_file", "does not exist"),
        ("model.ggu.gguf", "missing_file", "Did you mean model.gguf?"),
        ("~nobody-of-this-name/m", "missing_file", "does not exist"),
        ("a/b/c", "missing_file", "does not exist"),
        ("-x/y", "unknown_model", "no hub id"),
    ],
)
def test_errors_suggest_the_nearest_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.gguf").touch()
    (tmp_path / "models/Tiny").mkdir(parents=True)
    (tmp_path / "models/Tiny/qwen.gguf").touch()
    with pytest.raises(ArtifactError) as caught:
        parse_reference(text)
    assert (caught.value.reason, says in caught.value.message) == (reason, True), caught.value.message


def test_cached_hub_names_are_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match="Did you mean acme/tiny-llama"):
        parse_reference("acmetiny-llama", known=("acme/tiny-llama",))
