"""Downloads from the hub that do not go smoothly: cut, resumed, stalled, wrong, refused; and the cache that they leave."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headway.artifacts import hub as hub_module
from headway.artifacts.hub_listing import repository_files
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError, ConfigError
from tests.artifacts.loopback_hub import COMMIT, REPO, blob_name, hub, json_answer, storage_of
from tests.artifacts.loopback_server import Answer, Loopback, Request, loopback

pytestmark = pytest.mark.usefixtures("hub_environment")
SHARD = "model-00002-of-00002.safetensors"


@contextmanager
def serving(answer: Callable[[Request], Answer], monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback(answer) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def of_shard(normal: Callable[[Request], Answer], change: Callable[[Answer], Answer | None]) -> Callable[[Request], Answer]:
    """The same hub, but for the second shard."""

    def answer(request: Request) -> Answer:
        reply = normal(request)
        return (change(reply) or reply) if request.path.endswith(SHARD) else reply

    return answer


def asked_for(server: Loopback, name: str = SHARD) -> list[str | None]:
    """The ranges that were asked for."""
    return [request.headers.get("range") for request in server.requests if request.path.endswith(name)]


def refused() -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        inspect(REPO)
    return caught.value


def stored(cache: Path) -> set[str]:
    return {path.name for path in (cache / "models--acme--tiny" / "blobs").iterdir()}


def test_a_connection_that_is_cut_is_gone_on_with(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(reply: Answer) -> None:
        reply.cut = 1000

    with serving(of_shard(hub(files), cut), monkeypatch) as server:
        folder = inspect(REPO).path
    size = len(files[SHARD])
    assert asked_for(server) == [None, *(f"bytes={at}-" for at in range(1000, size, 1000))]
    assert (folder / SHARD).read_bytes() == files[SHARD]


def test_a_start_goes_on_where_the_last_one_ended(files: dict[str, bytes], hub_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first start gets 1000 bytes and then nothing more; the second asks for the rest only."""

    def cut_once(reply: Answer) -> Answer | None:
        if reply.status == 206:
            return Answer(206, b"", {**reply.headers, "Content-Length": "5"}, cut=0)
        reply.cut = 1000
        return None

    with serving(of_shard(hub(files), cut_once), monkeypatch):
        error = refused()
    assert error.reason == "download_failed"
    assert "a new start goes on from here" in error.message
    part = f"{blob_name(SHARD, files[SHARD])}.headway.incomplete"
    assert part in stored(hub_environment)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    offline = refused()
    assert offline.reason == "offline_not_cached"
    assert "is only partly in" in offline.message
    assert SHARD in offline.message
    monkeypatch.delenv("HF_HUB_OFFLINE")
    with serving(hub(files), monkeypatch) as server:
        inspect(REPO)
    assert asked_for(server) == ["bytes=1000-"]
    assert {request.path for request in server.requests if "/resolve/" in request.path} == {f"/{REPO}/resolve/{COMMIT}/{SHARD}"}
    assert not [name for name in stored(hub_environment) if name.endswith(".incomplete")]


def test_a_silent_server_is_left_and_asked_again(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the shard comes, then nothing, until the time-out; the rest comes with the second request."""
    monkeypatch.setattr(hub_module, "SILENCE_SECONDS", 0.2)
    stalled: list[object] = []

    def stall(reply: Answer) -> Answer | None:
        if not stalled:
            stalled.append(reply)
            return Answer(200, reply.body[: len(reply.body) // 2], {**reply.headers, "Content-Length": str(len(reply.body))})
        return None

    with serving(of_shard(hub(files), stall), monkeypatch) as server:
        inspect(REPO)
    assert asked_for(server) == [None, f"bytes={len(files[SHARD]) // 2}-"]


def test_the_variables_of_the_hub_library_set_the_patience(served: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "soon")
    with pytest.raises(ConfigError, match="HF_HUB_DOWNLOAD_TIMEOUT must be a whole number"):
        inspect(REPO)
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "60")
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "-1")
    with pytest.raises(ConfigError, match="HF_HUB_ETAG_TIMEOUT must be a whole number"):
        inspect(REPO)


def test_a_slow_trickle_is_no_silence(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every eighth comes within the time-out, the whole takes longer than it."""
    monkeypatch.setattr(hub_module, "SILENCE_SECONDS", 0.4)

    def trickle(reply: Answer) -> None:
        reply.trickle = 0.08

    with serving(of_shard(hub(files), trickle), monkeypatch) as server:
        inspect(REPO)
    assert asked_for(server) == [None]


@pytest.mark.parametrize(("wrong", "hashes"), [("other bytes", "all"), ("shorter", "all"), ("shorter", "sizes"), ("longer", "sizes")])
def test_what_is_not_what_the_hub_promised_is_refused_and_not_kept(
    wrong: str, hashes: Any, files: dict[str, bytes], hub_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = files[SHARD]
    content = {"other bytes": right[:-1] + b"?", "shorter": right[:-10], "longer": right + bytes(10_000_000)}[wrong]
    most = 0

    def progress(label: str, done: int, total: int | None) -> None:
        nonlocal most
        most = max(most, done)

    answers = hub({**files, SHARD: content}, listed={SHARD: right}, hashes=hashes)
    with serving(answers, monkeypatch), pytest.raises(ArtifactError) as caught:
        inspect(REPO, progress=progress)
    assert caught.value.reason == "hash_mismatch"
    for part in (SHARD, f"{len(right)} bytes", "proxy", *([blob_name(SHARD, right)] if hashes == "all" else [])):
        assert part in caught.value.message
    assert most < 1_000_000  # bytes that nobody promised are not stored first
    assert not [name for name in stored(hub_environment) if name.endswith(".incomplete")]
    assert not (hub_environment / f"models--acme--tiny/snapshots/{COMMIT}/{SHARD}").exists()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert refused().reason == "offline_not_cached"


def test_small_files_are_checked_by_their_git_id(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = files["config.json"].replace(b"128", b"256")
    with serving(hub({**files, "config.json": damaged}, listed={"config.json": files["config.json"]}), monkeypatch):
        error = refused()
    assert error.reason == "hash_mismatch"
    assert "git blob" in error.message


def test_a_damaged_file_of_the_cache_is_replaced(served: Loopback, files: dict[str, bytes]) -> None:
    folder = inspect(REPO).path
    blob = (folder / SHARD).resolve()
    blob.write_bytes(files[SHARD][:-5])
    served.requests.clear()
    assert inspect(REPO).path == folder
    assert blob.read_bytes() == files[SHARD]
    assert asked_for(served) == [None]


def test_a_gguf_model_of_parts_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.artifacts.model_files import write_gguf

    content = write_gguf(tmp_path / "x.gguf").read_bytes()
    names = [f"tiny-Q8_0-0000{i}-of-00002.gguf" for i in (1, 2)]
    with serving(hub(dict.fromkeys(names, content)), monkeypatch) as server:
        with pytest.raises(ArtifactError) as caught:
            inspect(REPO)  # both parts hold the same tensors
        assert caught.value.reason == "tensor_twice"
        snapshot = Path(str(caught.value.param)).parent
        (snapshot / names[1]).unlink()
        (snapshot / names[1]).symlink_to("nothing")
        server.requests.clear()
        with pytest.raises(ArtifactError):
            inspect(REPO)
        assert (snapshot / names[1]).exists()
        assert not asked_for(server, names[0])


@pytest.mark.parametrize(
    ("status", "code", "reason", "tries"),
    [
        (401, "", "hub_unauthorized", 1),
        (401, "GatedRepo", "hub_gated", 1),
        (403, "GatedRepo", "hub_gated", 1),
        (403, "", "hub_forbidden", 1),
        (404, "EntryNotFound", "hub_file_not_found", 1),
        (429, "", "hub_rate_limited", 4),
        (500, "", "hub_unavailable", 4),
        (503, "", "hub_unavailable", 4),
    ],
)
def test_a_file_that_is_refused_has_the_reasons_of_the_listing(
    status: int, code: str, reason: str, tries: int, files: dict[str, bytes], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may list a gated repository; only its files are refused."""
    headers = {"Retry-After": "7"} | ({"X-Error-Code": code} if code else {})
    with serving(of_shard(hub(files), lambda reply: json_answer({"error": "no"}, status, **headers)), monkeypatch) as server:
        error = refused()
    assert (error.reason, len(asked_for(server))) == (reason, tries)
    assert waits == [7.0] * (tries - 1)


def test_the_wait_grows_and_a_stated_wait_is_bounded(files: dict[str, bytes], waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(of_shard(hub(files), lambda reply: Answer(503)), monkeypatch):
        refused()
    assert waits == [0.5, 1.0, 2.0]
    waits.clear()
    with serving(of_shard(hub(files), lambda reply: Answer(429, headers={"Retry-After": "86400"})), monkeypatch):
        refused()
    assert waits == [30.0] * 3


def test_the_letter_case_of_the_hub_is_the_one_that_is_stored(
    served: Loopback, hub_environment: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = inspect("Acme/TINY")
    assert [entry.name for entry in hub_environment.iterdir() if entry.name.startswith("models")] == ["models--acme--tiny"]
    assert "The hub calls Acme/TINY acme/tiny" in caplog.text
    caplog.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert inspect("ACME/Tiny").path == card.path
    assert "letter case matters" in caplog.text
    caplog.clear()
    assert inspect(REPO).path == card.path
    assert not caplog.records


def test_a_mirror_that_promises_nothing_is_believed(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(hub(files, hashes="none"), monkeypatch) as server:
        folder = inspect(REPO).path
        server.requests.clear()
        assert inspect(REPO).path == folder
    assert not server.requests
    assert (folder / SHARD).read_bytes() == files[SHARD]


def test_huggingface_hub_finds_what_we_stored_and_we_what_it_stored(
    files: dict[str, bytes], hub_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import scan_cache_dir, snapshot_download

    with serving(hub(files), monkeypatch) as server:
        ours = inspect(REPO).path
        options = {"cache_dir": hub_environment, "endpoint": server.url, "token": False}
        server.requests.clear()
        theirs = snapshot_download(REPO, allow_patterns=[path.name for path in ours.iterdir()], **options)
        assert Path(theirs) == ours
        assert not [request for request in server.requests if request.method == "GET" and "/resolve/" in request.path]
        scan = scan_cache_dir(hub_environment)
        assert not scan.warnings
        (repo,) = scan.repos
        assert (repo.repo_id, repo.nb_files, {ref for revision in repo.revisions for ref in revision.refs}) == (REPO, len(list(ours.iterdir())), {"main"})
        other = tmp_path / "other"
        snapshot_download(REPO, allow_patterns=["*.json", "*.jinja", "model-*.safetensors"], **{**options, "cache_dir": other})
        server.requests.clear()
        assert inspect(REPO, cache_dir=other).path.is_relative_to(other)
        assert not server.requests


def test_names_that_would_leave_the_snapshot_are_left_out() -> None:
    names = ("../x.json", "1_/../../x/config.json", "/etc/x.json", "a\\b.json", "", "a\0.json", "ok.json")
    assert list(repository_files(COMMIT, [{"rfilename": name} for name in names])) == ["ok.json"]


@pytest.mark.parametrize("wrong", [{"blobId": "../../../x"}, {"lfs": {"sha256": "../x", "size": 3}}, {"lfs": {}, "size": -1}, {"size": "3"}])
def test_hashes_and_sizes_that_are_none_are_no_promises(wrong: dict[str, Any]) -> None:
    file = repository_files(COMMIT, [{"rfilename": "ok.json", **wrong}])["ok.json"]
    assert file.blob.isalnum()
    assert (file.promised.sha256, file.promised.git_blob) == (None, None)
    assert file.promised.nbytes in (None, 3)


def test_another_name_than_the_one_asked_for_is_no_folder_of_the_cache(
    files: dict[str, bytes], hub_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    normal = hub(files)

    def answer(request: Request) -> Answer:
        reply = normal(request)
        reply.body = reply.body.replace(b'"id": "acme/tiny"', b'"id": "../../tiny"')
        return reply

    with serving(answer, monkeypatch):
        assert inspect(REPO).path.is_relative_to(hub_environment / "models--acme--tiny")


def test_a_commit_that_is_none_is_refused(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> Answer:
        return json_answer({"id": REPO, "sha": "../../x", "siblings": [], "tags": [], "downloads": 0})

    with serving(answer, monkeypatch):
        error = refused()
    assert error.reason == "hub_answer"
    assert "HF_ENDPOINT" in error.message


@pytest.mark.parametrize("body", [b"<html>Log in</html>", b"[]", b"{}", b'{"siblings": 5}'])
def test_an_endpoint_that_is_no_hub_says_so(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda request: Answer(200, body), monkeypatch) as server:
        error = refused()
    assert error.reason == "hub_answer"
    assert server.url in error.message
    assert len(server.requests) == 1


def test_signed_links_and_tokens_stay_out_of_messages_and_logs(
    files: dict[str, bytes], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_TESTONLY123")
    with loopback(storage_of({})) as storage, serving(hub(files, storage=storage.url), monkeypatch), caplog.at_level(logging.INFO):
        error = refused()
    assert error.reason == "hub_storage_refused"
    assert storage.url in error.message
    assert "model-00001-of-00002.safetensors" in caplog.text
    for secret in ("hf_TESTONLY123", "X-Signature=secret"):
        assert secret not in error.message
        assert secret not in caplog.text
