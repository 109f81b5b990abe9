"""The hub against a server on loopback that speaks as much of its API as a download needs."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.artifacts.hub_cache import find_snapshot
from headway.artifacts.hub_files import wanted_files
from headway.artifacts.hub_token import FOREIGN_VARIABLES
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from tests.artifacts.loopback_hub import COMMIT, REPO, hub, json_answer, storage_of
from tests.artifacts.loopback_server import Answer, Loopback, Request, loopback
from tests.artifacts.model_files import write_gguf

pytestmark = pytest.mark.usefixtures("hub_environment")


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
    request.getfixturevalue("no_connections")
    assert inspect(REPO).path == first.path
    assert inspect(f"{REPO}@{COMMIT}").path == first.path
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert inspect(REPO, revision="main").revision == COMMIT


@pytest.mark.usefixtures("no_connections")
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
        (json_answer({"error": "Invalid credentials"}, 401), "hub_unauthorized", "HF_TOKEN", False),
        (json_answer({"error": "gated"}, 403, **{"X-Error-Code": "GatedRepo"}), "hub_gated", "Accept the terms", False),
        (json_answer({"error": "no"}, 403), "hub_forbidden", "read access", False),
        (json_answer({"error": "no"}, 404, **{"X-Error-Code": "RepoNotFound"}), "hub_not_found", "no such repository", False),
        (json_answer({"error": "slow down"}, 429, **{"Retry-After": "0"}), "hub_rate_limited", "429", True),
        (json_answer({"error": "down"}, 500), "hub_unavailable", "500", True),
        (json_answer({"error": "down"}, 503), "hub_unavailable", "503", True),
        (json_answer({}, 403, **{"X-Error-Message": "Access to this resource is disabled."}), "hub_disabled", "disabled", False),
        (json_answer({}, 404, **{"X-Error-Code": "RevisionNotFound"}), "hub_revision_not_found", "/tree/main", False),
    ],
)
def test_each_answer_has_its_own_reason(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, reason: str, says: str, retried: bool
) -> None:
    error, requests = _failure(monkeypatch, answer)
    assert (error.reason, says in error.message) == (reason, True), error.message
    assert len(requests) == (4 if retried else 1)


def test_a_transient_answer_is_survived(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    failing, normal = [json_answer({}, 503), json_answer({}, 429, **{"Retry-After": "0"})], hub(files)
    with loopback(lambda request: failing.pop(0) if failing else normal(request)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert inspect(REPO).revision == COMMIT


def test_unknown_revision_and_unreachablehub(served: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
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
        error, requests = _failure(monkeypatch, json_answer({"error": "no"}, 401))
    assert requests[0].headers["authorization"] == "Bearer hf_TESTONLY123"
    assert error.reason == "hub_token_refused"
    assert f"the token from {variable} was sent" in error.message
    assert "white space" in caplog.text
    assert variable in caplog.text
    assert "hf_TESTONLY123" not in error.message + caplog.text


def test_the_token_of_a_login_is_named_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`huggingface_hub` reads the file; another process, since it notes the path when it is imported."""
    (tmp_path / "token").write_text("hf_FROMFILE123\n")
    with loopback(lambda request: json_answer({"error": "no"}, 401)) as server:
        environment = {**os.environ, "HF_ENDPOINT": server.url, "HF_TOKEN_PATH": str(tmp_path / "token")}
        command = [sys.executable, "-m", "headway.cli.main", "inspect", REPO, "--json"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert [request.headers.get("authorization") for request in server.requests] == ["Bearer hf_FROMFILE123"]
    error = json.loads(run.stdout)["error"]
    assert (run.returncode, error["reason"]) == (1, "hub_token_refused")
    assert "the token from the file that HF_TOKEN_PATH names was sent" in error["message"]
    assert "hf_FROMFILE123" not in run.stdout + run.stderr


@pytest.mark.parametrize("variable", FOREIGN_VARIABLES)
def test_a_token_under_a_name_that_nobody_reads_is_pointed_out(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "hf_TESTONLY123")
    error, requests = _failure(monkeypatch, json_answer({"error": "no"}, 401))
    assert "authorization" not in requests[0].headers
    assert error.reason == "hub_unauthorized"
    assert f"{variable} is set, but is not the name of a hub token: use HF_TOKEN" in error.message
    assert "hf_TESTONLY123" not in error.message


@pytest.mark.parametrize("value", ["hf_TEST ONLY", "hf_TEST\nONLY", "hf_TÄST"])
def test_a_token_that_no_header_can_carry_is_refused_unsent(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", value)
    error, requests = _failure(monkeypatch, json_answer({}))
    assert error.reason == "hub_token_malformed"
    assert "HF_TOKEN" in error.message
    assert value not in error.message
    assert not requests


def test_gated_with_and_without_token_have_different_fixes(monkeypatch: pytest.MonkeyPatch) -> None:
    gated = json_answer({"error": "gated"}, 401, **{"X-Error-Code": "GatedRepo"})
    error, _ = _failure(monkeypatch, gated)
    assert error.reason == "hub_gated"
    assert "no token was found" in error.message
    assert "then set HF_TOKEN, also inside the container" in error.message
    monkeypatch.setenv("HF_TOKEN", "hf_TESTONLY123")
    error, _ = _failure(monkeypatch, gated)
    assert "with the account of the token" in error.message


def test_a_password_in_the_endpoint_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(lambda request: json_answer({}, 418)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url.replace("//", "//user:sesame@"))
        with pytest.raises(ArtifactError) as caught:
            inspect(REPO)
    assert caught.value.reason == "hub_answer"
    assert "418" in caught.value.message
    assert "sesame" not in caught.value.message


def test_token_is_not_sent_to_another_host(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that the hub redirects to a storage host are fetched from there without the token."""
    monkeypatch.setenv("HF_TOKEN", "hf_TESTONLY123")
    with loopback(storage_of(files)) as storage:
        with loopback(hub(files, storage=storage.url.replace("127.0.0.1", "localhost"))) as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            inspect(REPO)
        assert all(request.headers.get("authorization") == "Bearer hf_TESTONLY123" for request in server.requests)
        assert len([request.path for request in storage.requests if request.method == "GET"]) == 2
        assert not any("hf_TESTONLY123" in f"{request.headers}{request.path}" for request in storage.requests)


def test_gguf_repositories_by_variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_gguf(tmp_path / "x.gguf").read_bytes()
    files = {
        "tiny-Q4_K_M.gguf": content,
        "tiny-Q4_K_S.gguf": content,
        "tiny-Q8_0.gguf": content,
        "mmproj-F16.gguf": b"x",
    }
    with loopback(hub(files)) as server:
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
