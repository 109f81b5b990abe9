"""Waiting for another process that downloads the same file, and the bounds of that."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway.artifacts import cache_lock
from headway.artifacts.cache_lock import lock_holder, locked
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from tests.artifacts.loopback_hub import REPO, blob_name
from tests.artifacts.loopback_server import Loopback

SHARD = "model-00001-of-00002.safetensors"
# The lock of huggingface_hub itself, as `hf download` takes it.
_HOLD = "import sys; from huggingface_hub.utils import WeakFileLock\nwith WeakFileLock(sys.argv[1]): print('held', flush=True); sys.stdin.read()"

Hold = Callable[[Path], "subprocess.Popen[bytes]"]


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Starts a process that holds a lock file until its input ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(path: Path) -> subprocess.Popen[bytes]:
        path.parent.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen([sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_lock, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(cache_lock, "IDLE_SECONDS", 0.3)


def _lock_of_shard(cache: Path, files: dict[str, bytes]) -> Path:
    return cache / ".locks" / "models--acme--tiny" / f"{blob_name(SHARD, files[SHARD])}.lock"


def test_a_download_that_another_process_never_finishes_is_given_up_by_name(
    served: Loopback, files: dict[str, bytes], hub_environment: Path, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    lock = _lock_of_shard(hub_environment, files)
    process = hold(lock)
    seen: list[str] = []
    with pytest.raises(ArtifactError) as caught:
        inspect(REPO, progress=lambda label, done, total: seen.append(label))
    assert caught.value.reason == "cache_locked"
    for part in (SHARD, REPO, f"process {process.pid}", str(lock), "End that process"):
        assert part in caught.value.message
    assert f"Waiting for process {process.pid}" in caplog.text
    assert f"waiting for process {process.pid}: {SHARD} of {REPO}" in seen
    assert not any(SHARD in request.path for request in served.requests)


def test_the_lock_of_a_dead_process_is_free(
    served: Loopback, files: dict[str, bytes], hub_environment: Path, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = _lock_of_shard(hub_environment, files)
    process = hold(lock)
    process.kill()
    process.wait()
    assert lock.exists()
    assert inspect(REPO).architecture == "LlamaForCausalLM"


def test_what_another_process_finished_meanwhile_is_not_fetched_again(
    served: Loopback, files: dict[str, bytes], hub_environment: Path, hold: Hold
) -> None:
    process = hold(_lock_of_shard(hub_environment, files))
    blob = hub_environment / "models--acme--tiny/blobs" / blob_name(SHARD, files[SHARD])

    def finish(label: str, done: int, total: int | None) -> None:
        if label.startswith("waiting for") and not blob.exists():
            blob.write_bytes(files[SHARD])
            process.communicate(b"")

    folder = inspect(REPO, progress=finish).path
    assert (folder / SHARD).resolve() == blob
    assert not any(SHARD in request.path for request in served.requests)


def test_one_that_gets_on_is_waited_for_beyond_the_bound(tmp_path: Path, hold: Hold) -> None:
    """The bound counts from the last growth: here ten waits of half the bound each."""
    process = hold(tmp_path / "lock")
    grown, ended = [0], threading.Event()

    def grow() -> None:
        for _ in range(10):
            ended.wait(0.15)
            grown[0] += 1
        process.communicate(b"")

    thread = threading.Thread(target=grow)
    thread.start()
    with locked(tmp_path / "lock", "it", lambda: grown[0]):
        assert grown[0] == 10
    thread.join()


def test_the_holder_is_known_from_the_system_or_not_at_all(tmp_path: Path, hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    process = hold(tmp_path / "lock")
    assert lock_holder(tmp_path / "lock") == process.pid
    assert lock_holder(tmp_path / "absent") is None
    (tmp_path / "free").touch()
    assert lock_holder(tmp_path / "free") is None
    monkeypatch.setattr(cache_lock, "_PROC_LOCKS", tmp_path / "absent")
    with pytest.raises(ArtifactError, match="locked by another process"), locked(tmp_path / "lock", "it", lambda: 0):
        pass


def test_a_lock_is_released_by_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock", "it", lambda: 0):
            1 / 0  # noqa: B018
