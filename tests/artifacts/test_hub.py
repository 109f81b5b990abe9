"""The hub against a server on loopback that speaks as much of its API as a download needs."""

from __future__ import annotations

import hashlib
import json
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from headway.artifacts import hub
from headway.artifacts.hub_cache import find_snapshot
from headway.artifacts.hub_files import wanted_files
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from tests.artifacts.loopback_server import Answer, Loopback, Request, loopback, ranged
from tests.artifacts.model_files import write_folder, write_gguf

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "acme/tiny"


def _json(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


def _hub(files: dict[str, bytes]) -> Callable[[Request], Answer]:
    """Routes of the hub for one public repository."""

    def answer(request: Request) -> Answer:
        path = unquote(request.path.partition("?")[0])
        if path in (
            f"/api/models/{REPO}",
            f"/api/models/{REPO}/revision/main",
            f"/api/models/{REPO}/revision/{COMMIT}",
        ):
            siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
            return _json(
                {
                    "id": REPO,
                    "modelId": REPO,
                    "sha": COMMIT,
                    "siblings": siblings,
                    "private": False,
                    "tags": [],
                    "downloads": 0,
                }
            )
        if path == f"/api/models/{REPO}/tree/{COMMIT}":
            return _json(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                    for name, content in files.items()
                ]
            )
        for name, content in files.items():
            if path in (f"/{REPO}/resolve/{COMMIT}/{name}", f"/{REPO}/resolve/main/{name}"):
                reply = ranged(request, content)
                reply.headers |= {
                    "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
                    "X-Repo-Commit": COMMIT,
                    "Accept-Ranges": "bytes",
                }
                return reply
        if path.startswith(f"/api/models/{REPO}/revision/"):
            return _json({"error": "Invalid rev id"}, 404, **{"X-Error-Code": "RevisionNotFound"})
        return _json({"error": "Repository not found"}, 404, **{"X-Error-Code": "RepoNotFound"})

    return answer


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


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "HF_HUB_OFFLINE",
        "TRANSFORMERS_OFFLINE",
        "HEADWAY_OFFLINE",
        "HF_ENDPOINT",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    monkeypatch.setattr(hub.time, "sleep", lambda seconds: None)


@pytest.fixture
def served(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback(_hub(files)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def _no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt to resolve a name or to connect fails the test."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"a connection was tried: {arguments}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_download_takes_what_a_model_needs_and_reports_progress(served: Loopback, files: dict[str, bytes]) -> None:
    seen: list[tuple[str, int, int | None]] = []
    card = inspect(REPO, progress=lambda *step: seen.append(step))
    assert (card.architecture, card.licence, card.revision, card.chat_template) == (
        "LlamaForCausalLM",
        "mit",
        COMMIT,
        True,
    )
    assert {path.name for path in card.path.iterdir()} == set(files) - {
        "pytorch_model.bin", "consolidated.safetensors", "original/params.json", "modeling.py", "model.onnx",
    }  # fmt: skip
    total = sum(len(files[path.name]) for path in card.path.iterdir())
    assert seen[-1] == (REPO, total, total)


def test_a_cached_model_starts_without_any_connection(
    served: Loopback, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = inspect(REPO)
    request.getfixturevalue("_no_connections")
    assert inspect(REPO).path == first.path
    assert inspect(f"{REPO}@{COMMIT}").path == first.path
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert inspect(REPO, revision="main").revision == COMMIT


@pytest.mark.usefixtures("_no_connections")
def test_offline_and_not_cached_names_model_cache_command_and_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "hub/models--acme--tinny").mkdir(parents=True)
    with pytest.raises(ArtifactError) as caught:
        inspect(f"{REPO}@v2")
    assert caught.value.reason == "offline_not_cached"
    for part in (
        REPO,
        "v2",
        str(tmp_path / "hub"),
        f"hf download {REPO} --revision v2",
        "HF_HUB_OFFLINE",
        "Did you mean acme/tinny",
    ):
        assert part in caught.value.message


def test_an_incomplete_cache_is_completed_online_and_refused_offline(
    served: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = inspect(REPO).path
    shard = folder / "model-00002-of-00002.safetensors"
    shard.resolve().unlink()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ArtifactError, match="partly") as caught:
        inspect(REPO)
    assert shard.name in caught.value.message
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert inspect(REPO).path == folder
    assert shard.exists()


def _failure(
    monkeypatch: pytest.MonkeyPatch, *answers: Answer, reference: str = REPO
) -> tuple[ArtifactError, list[Request]]:
    remaining = list(answers)
    with loopback(lambda request: remaining.pop(0) if len(remaining) > 1 else remaining[0]) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(ArtifactError) as caught:
            inspect(reference)
    return caught.value, server.requests


@pytest.mark.parametrize(
    ("answer", "reason", "says", "retried"),
    [
        (_json({"error": "Invalid credentials"}, 401), "hub_unauthorized", "HF_TOKEN", False),
        (_json({"error": "gated"}, 403, **{"X-Error-Code": "GatedRepo"}), "hub_gated", "Accept the terms", False),
        (_json({"error": "no"}, 403), "hub_forbidden", "read access", False),
        (_json({"error": "no"}, 404, **{"X-Error-Code": "RepoNotFound"}), "hub_not_found", "no such repository", False),
        (_json({"error": "slow down"}, 429, **{"Retry-After": "0"}), "hub_rate_limited", "429", True),
        (_json({"error": "down"}, 503), "hub_unavailable", "503", True),
    ],
)
def test_each_answer_has_its_own_reason(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, reason: str, says: str, retried: bool
) -> None:
    error, requests = _failure(monkeypatch, answer)
    assert (error.reason, says in error.message) == (reason, True), error.message
    assert (len(requests) > 1) == retried


def test_a_transient_answer_is_survived(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    failing, normal = [_json({}, 503), _json({}, 429, **{"Retry-After": "0"})], _hub(files)
    with loopback(lambda request: failing.pop(0) if failing else normal(request)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert inspect(REPO).revision == COMMIT


def test_unknown_revision_and_unreachable_hub(served: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArtifactError, match="no revision v9") as caught:
        inspect(f"{REPO}@v9")
    assert caught.value.reason == "hub_revision_not_found"
    with loopback(lambda request: Answer()) as gone:
        pass
    monkeypatch.setenv("HF_ENDPOINT", gone.url)
    with pytest.raises(ArtifactError, match="HF_ENDPOINT") as caught:
        inspect(REPO)
    assert caught.value.reason == "hub_unreachable"


@pytest.mark.parametrize("variable", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
def test_token_is_sent_trimmed_named_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str
) -> None:
    monkeypatch.setenv(variable, "hf_TESTONLY123\n")
    with caplog.at_level(logging.DEBUG):
        error, requests = _failure(monkeypatch, _json({"error": "no"}, 401))
    assert requests[0].headers["authorization"] == "Bearer hf_TESTONLY123"
    assert variable in error.message
    assert "white space" in caplog.text
    assert "hf_TESTONLY123" not in error.message + caplog.text


def test_token_is_not_sent_to_another_host(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that the hub redirects to a storage host are fetched from there without the token."""
    monkeypatch.setenv("HF_TOKEN", "hf_TESTONLY123")
    normal = _hub(files)

    with loopback(normal) as storage:
        elsewhere = storage.url.replace("127.0.0.1", "localhost")

        def redirecting(request: Request) -> Answer:
            reply = normal(request)
            if ".safetensors" in request.path and reply.status < 300 and "/resolve/" in request.path:
                size = len(files[request.path.rsplit("/", 1)[1]])
                headers = {
                    "Location": elsewhere + request.path,
                    "X-Linked-Size": str(size),
                    "X-Linked-ETag": reply.headers["ETag"],
                }
                return Answer(302, b"", reply.headers | headers)
            return reply

        with loopback(redirecting) as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            inspect(REPO)
        assert any(request.headers.get("authorization") for request in server.requests)
        assert [request.path for request in storage.requests if request.method == "GET"]
        assert not any("authorization" in request.headers for request in storage.requests)


def test_gguf_repositories_by_variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_gguf(tmp_path / "x.gguf").read_bytes()
    files = {
        "tiny-Q4_K_M.gguf": content,
        "tiny-Q4_K_S.gguf": content,
        "tiny-Q8_0.gguf": content,
        "mmproj-F16.gguf": b"x",
    }
    with loopback(_hub(files)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        card = inspect(f"{REPO}:q8_0")
        assert card.path.name == "tiny-Q8_0.gguf"
        assert [entry.name for entry in card.path.parent.iterdir()] == ["tiny-Q8_0.gguf"]
        for reference, says in ((REPO, "several"), (f"{REPO}:Q4", "no GGUF file for Q4")):
            with pytest.raises(ArtifactError, match=says) as caught:
                wanted_files(REPO, dict.fromkeys(files, 1), reference.partition(":")[2] or None)
            assert caught.value.reason == "ambiguous_model"
        with pytest.raises(ArtifactError, match="Q4_K_S"):
            inspect(f"{REPO}:Q2_K")


@pytest.mark.parametrize(
    ("names", "reason"), [(["pytorch_model.bin", "config.json"], "unsafe_weights"), (["README.md"], "no_weights")]
)
def test_repositories_without_usable_weights(names: list[str], reason: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        wanted_files(REPO, dict.fromkeys(names, 1), None)
    assert caught.value.reason == reason


def test_cache_lookup_does_not_leave_the_cache(tmp_path: Path) -> None:
    storage = tmp_path / "hub/models--acme--tiny"
    (storage / "refs").mkdir(parents=True)
    (tmp_path / "secret").write_text(COMMIT)
    assert find_snapshot(REPO, "../../../secret", None, tmp_path / "hub") is None
    (storage / "refs/main").write_text("../../x")
    assert find_snapshot(REPO, None, None, tmp_path / "hub") is None
