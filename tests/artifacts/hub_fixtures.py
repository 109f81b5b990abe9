"""Fixtures for tests against a hub on loopback: a repository, and an environment in which nothing else can be reached."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from headway.artifacts import resumable_download
from headway.artifacts.hub_token import FOREIGN_VARIABLES, TOKEN_VARIABLES
from tests.artifacts.loopback_hub import hub
from tests.artifacts.loopback_server import Loopback, loopback
from tests.artifacts.model_files import write_folder

_SETTINGS = ("HF_TOKEN_PATH", "HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HEADWAY_OFFLINE", "HF_ENDPOINT")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    """A repository: two shards, side files, and much that must stay where it is."""
    folder = write_folder(tmp_path / "repo", shards=2)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    unwanted = {
        "pytorch_model.bin": b"x",
        "consolidated.safetensors": b"x",
        "original/params.json": b"{}",
        "modeling.py": b"x",
        "model.onnx": b"x",
    }
    return {path.name: path.read_bytes() for path in folder.iterdir()} | unwanted


@pytest.fixture
def waits() -> list[float]:
    """Seconds that were waited for between tries; nothing really waits."""
    return []


@pytest.fixture
def hub_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> Path:
    """No token, no cache, no waiting; the folder of the cache."""
    for name in (*TOKEN_VARIABLES, *FOREIGN_VARIABLES, *_SETTINGS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    monkeypatch.setattr(resumable_download, "time", SimpleNamespace(sleep=waits.append))
    return tmp_path / "hub"


@pytest.fixture
def served(files: dict[str, bytes], hub_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback(hub(files)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt to resolve a name or to connect fails the test."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"a connection was tried: {arguments}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
