"""Relative file names begin at the folder of the configuration, wherever the process was started and whoever reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.errors import HeadwayError
from headway.router.config.history.plan import plan
from headway.router.config.load import Source, examine, load_document, read_source
from headway.router.config.migration.migrate import migrate
from headway.router.deployments.bindings import requirements_of
from headway.router.process.overrides import Overrides, overridden
from headway.router.process.referenced_files import referenced_files
from tests.router.config.documents import changed

_PICTURE = base64.b64decode("iVBORw0KGgo=")
_EMBEDDING = {
    "deployments": {"e": {"provider": "model_runtime", "endpoint": "http://127.0.0.1:8100"}},
    "bindings": {"embedding": {"deployment": "e", "contract": "embedding.v1"}},
}


def tools(data: dict[str, Any]) -> None:
    settings = {"enabled": True, "mode": "add", "tools_db_path": "files/tools.json"}
    data["routing"]["decisions"][0]["plugins"] = [{"type": "tool_selection", "configuration": settings}]


def shared_tools(data: dict[str, Any]) -> None:
    data["routing"]["decisions"][0]["plugins"] = [{"type": "tool_selection", "configuration": {"enabled": True, "mode": "add"}}]
    data["global"] = {"integrations": {"tools": {"enabled": True, "tools_db_path": "files/tools.json"}}}


def knowledge_base(data: dict[str, Any]) -> None:
    kb = {"name": "kb", "source": {"path": "files"}, "threshold": 0.8, "groups": {"all": ["private"]}}
    data["global"] = {"model_catalog": {**_EMBEDDING, "kbs": [kb]}}
    data["routing"]["signals"]["kb"] = [{"name": "k", "kb": "kb", "target": {"kind": "label", "value": "private"}}]
    data["routing"]["decisions"][0]["rules"]["conditions"].append({"type": "kb", "name": "k"})


def picture(data: dict[str, Any]) -> None:
    data["global"] = {"model_catalog": _EMBEDDING}
    data["routing"]["signals"]["embeddings"] = [{"name": "p", "threshold": 0.5, "image_candidates": ["files/picture.png"]}]
    data["routing"]["decisions"][0]["rules"]["conditions"].append({"type": "embedding", "name": "p"})


USES: dict[str, Callable[[dict[str, Any]], None]] = {"tools": tools, "shared tools": shared_tools, "knowledge base": knowledge_base, "picture": picture}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration's folder with what it names; the working directory is another one, where nothing is."""
    files = tmp_path / "configuration" / "files"
    files.mkdir(parents=True)
    tool = {"tool": {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {}}}, "description": "Adds."}
    (files / "tools.json").write_text(json.dumps([tool]))
    (files / "labels.json").write_text(json.dumps({"labels": {"private": {"exemplars": ["my name"]}}}))
    (files / "picture.png").write_bytes(_PICTURE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return files.parent


def written(folder: Path, use: Callable[[dict[str, Any]], None]) -> Path:
    data = changed("listeners", 0, "port", to=8899)
    use(data)
    (folder / "config.yaml").write_text(yaml.safe_dump(data))
    return folder / "config.yaml"


@pytest.mark.parametrize("name", USES)
def test_the_file_is_found_from_anywhere_by_everybody(folder: Path, name: str) -> None:
    path = written(folder, USES[name])
    text = path.read_text()
    loaded = load_document(path)
    assert load_document(text, folder=folder).document == loaded.document
    assert examine(read_source(path)).valid
    assert examine(Source(text, folder=folder)).valid
    assert overridden(loaded.document, Overrides(algorithm="random")).folder == folder
    assert plan(text, text.replace("8899", "8898"), "replace", folder=folder).valid
    assert migrate(read_source(path)).remaining == ()


@pytest.mark.parametrize("name", USES)
def test_the_working_directory_counts_only_for_a_text_without_a_file(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = written(folder, USES[name]).read_text()
    assert not examine(Source(text)).valid
    monkeypatch.chdir(folder)
    assert examine(Source(text)).valid


def test_a_configuration_named_by_a_relative_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(folder, tools)
    monkeypatch.chdir(folder.parent)
    assert load_document(Path("configuration/config.yaml")).document.folder == Path("configuration")
    monkeypatch.chdir(folder)
    assert load_document(Path("config.yaml"))


def test_label_files_trained_selectors_and_certificates(folder: Path) -> None:
    (folder / "labels.json").write_text(json.dumps({"label_to_idx": {"a": 0, "b": 1}}))
    data = changed("listeners", 0, "tls", to={"cert_file": "files/picture.png", "key_file": "files/labels.json"})
    binding = {"deployment": "e", "contract": "label_distribution.v1", "mapping_path": "labels.json"}
    catalog = {**_EMBEDDING, "bindings": {**_EMBEDDING["bindings"], "domain_classifier": binding}}
    data["global"] = {"model_catalog": catalog, "router": {"model_selection": {"ml": {"models_path": "trained"}}}}
    data["routing"]["decisions"][0]["algorithm"] = {"type": "knn"}
    (folder / "config.yaml").write_text(yaml.safe_dump(data))
    (told,) = [each for each in examine(read_source(folder / "config.yaml")).diagnostics if each.severity == "error"]
    assert str(folder / "trained" / "knn") in told.message
    del data["routing"]["decisions"][0]["algorithm"]
    document = load_document(yaml.safe_dump(data), folder=folder).document
    assert {each.labels for each in requirements_of(document)} == {("a", "b"), ()}
    assert referenced_files(document) == [folder / "files/picture.png", folder / "files/labels.json", folder / "labels.json"]


@pytest.mark.parametrize("name", ["/absolute/x.json", "~/x.json"])
def test_other_names_mean_what_they_always_mean(folder: Path, name: str) -> None:
    document = load_document(written(folder, tools)).document
    assert document.place(name) == Path(name).expanduser()


def test_a_missing_file_is_told_at_validation(folder: Path) -> None:
    path = written(folder, tools)
    (folder / "files" / "tools.json").unlink()
    with pytest.raises(HeadwayError, match=r"tools\.json cannot be read"):
        load_document(path)
