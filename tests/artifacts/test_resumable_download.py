from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from headway.artifacts import resumable_download
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.resumable_download import DownloadFailed, Promised, download, http_client
from headway.errors import ArtifactError
from tests.artifacts.loopback_server import Answer, Request, loopback, ranged

CONTENT = bytes(range(256)) * 20_000  # 5 MB
SHA = hashlib.sha256(CONTENT).hexdigest()


def _get(url: str, part: Path, *, sha256: str, progress: ProgressCallback | None) -> None:
    with http_client() as client:
        download(client, url, part, Promised(sha256=sha256), label="m", progress=progress)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumable_download.time, "sleep", lambda seconds: None)


def test_whole_download_reports_progress(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    with loopback(lambda request: ranged(request, CONTENT)) as server:
        _get(f"{server.url}/f", tmp_path / "p", sha256=SHA, progress=lambda *step: seen.append(step))
    assert (tmp_path / "p").read_bytes() == CONTENT
    assert seen[-1] == ("m", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert len(seen) >= 3


def test_a_part_file_is_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(CONTENT[:1_000_000])
    with loopback(lambda request: ranged(request, CONTENT)) as server:
        _get(f"{server.url}/f", tmp_path / "p", sha256=SHA, progress=None)
        assert [request.headers.get("range") for request in server.requests] == ["bytes=1000000-"]
    assert (tmp_path / "p").read_bytes() == CONTENT


def test_a_complete_part_file_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(CONTENT)
    with loopback(lambda request: ranged(request, CONTENT)) as server:
        _get(f"{server.url}/f", tmp_path / "p", sha256=SHA, progress=None)
    assert (tmp_path / "p").read_bytes() == CONTENT


def test_a_file_that_is_empty_exists_afterwards(tmp_path: Path) -> None:
    with loopback(lambda request: ranged(request, b"")) as server, http_client() as client:
        download(client, f"{server.url}/f", tmp_path / "p", Promised(nbytes=0), label="m", progress=None)
    assert (tmp_path / "p").read_bytes() == b""


def test_a_server_without_ranges_starts_again(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"x" * 1000)
    with loopback(lambda request: Answer(body=CONTENT)) as server:
        _get(f"{server.url}/f", tmp_path / "p", sha256=SHA, progress=None)
    assert (tmp_path / "p").read_bytes() == CONTENT


def test_a_wrong_part_file_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"x" * 1000)
    with loopback(lambda request: ranged(request, CONTENT)) as server:
        _get(f"{server.url}/f", tmp_path / "p", sha256=SHA, progress=None)
        assert len(server.requests) == 2
    assert (tmp_path / "p").read_bytes() == CONTENT


def test_a_connection_that_drops_again_and_again_still_arrives(tmp_path: Path) -> None:
    def dropping(request: Request) -> Answer:
        answer = ranged(request, CONTENT)
        answer.cut = 600_000
        return answer

    with loopback(dropping) as server:
        _get(f"{server.url}/f", tmp_path / "p", sha256=SHA, progress=None)
        assert len(server.requests) == 9  # ceil(5,120,000 / 600,000)
    assert (tmp_path / "p").read_bytes() == CONTENT


def test_transient_answers_are_retried_and_final_ones_not(tmp_path: Path) -> None:
    answers = [Answer(503), Answer(429)]
    with loopback(lambda request: answers.pop(0) if answers else ranged(request, CONTENT)) as server:
        _get(f"{server.url}/f", tmp_path / "p", sha256=SHA, progress=None)
        assert len(server.requests) == 3
    with loopback(lambda request: Answer(403)) as server:
        with pytest.raises(DownloadFailed, match="403"):
            _get(f"{server.url}/f", tmp_path / "q", sha256=SHA, progress=None)
        assert len(server.requests) == 1


def test_a_dead_server_is_given_up(tmp_path: Path) -> None:
    with loopback(lambda request: Answer()) as server:
        url = server.url
    with pytest.raises(DownloadFailed, match="4 times in a row"):
        _get(f"{url}/f", tmp_path / "p", sha256=SHA, progress=None)


def test_wrong_content_is_refused_and_not_kept(tmp_path: Path) -> None:
    with (
        loopback(lambda request: ranged(request, CONTENT)) as server,
        pytest.raises(ArtifactError, match="sha256") as caught,
    ):
        _get(f"{server.url}/f", tmp_path / "p", sha256="0" * 64, progress=None)
    assert caught.value.reason == "hash_mismatch"
    assert not (tmp_path / "p").exists()
