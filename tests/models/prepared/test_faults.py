"""A cache that is damaged, full, read-only or used by others costs time, never the model."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from headway.models.prepared import folder
from headway.models.prepared.folder import make_room, path_of, preparing
from tests.models.prepared.conftest import kept, loaded, logits, touched_again


@pytest.fixture
def plain(packed: Path, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """Logits without any cache."""
    with monkeypatch.context() as alone:
        alone.setenv("HEADWAY_PREPARED_WEIGHTS", "off")
        return logits(loaded(packed))


def truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 100)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-500, os.SEEK_END)
        file.write(b"\xff" * 100)
    touched_again(path)


def of_another_model(path: Path) -> None:
    """The header of a file that somebody else made, with the same time."""
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b"embedding.weight", b"embedding.weighs", 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def not_json(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(8)
        file.write(b"#" * 50)


@pytest.mark.parametrize("damage", [truncated, emptied, overwritten, of_another_model, not_json])
def test_a_damaged_file_is_made_again(
    cache: Path, packed: Path, plain: torch.Tensor, reads: list[str], damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    loaded(packed)
    (path,) = kept(cache)
    sound = path.read_bytes()
    damage(path)  # type: ignore[operator]
    reads.clear()
    assert torch.equal(logits(loaded(packed)), plain)
    assert reads
    assert "cannot be used and are made again" in caplog.text
    assert path.read_bytes()[4096:] == sound[4096:]
    reads.clear()
    assert torch.equal(logits(loaded(packed)), plain)
    assert reads == []


def test_a_model_in_use_survives_the_removal_of_its_file(cache: Path, packed: Path, plain: torch.Tensor) -> None:
    loaded(packed)
    model = loaded(packed)
    kept(cache)[0].unlink()
    assert torch.equal(logits(model), plain)


@contextmanager
def small_files() -> Iterator[None]:
    """The system takes no files of more bytes, as a full disk would. Never around a whole test: pytest's own output may be a longer file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_becomes_full(cache: Path, packed: Path, plain: torch.Tensor) -> None:
    with small_files():
        model = loaded(packed)
    assert torch.equal(logits(model), plain)
    assert kept(cache) == []


def test_a_disk_without_room(cache: Path, packed: Path, plain: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "RESERVE_BYTES", 1 << 62)
    assert torch.equal(logits(loaded(packed)), plain)
    assert kept(cache) == []


@pytest.mark.parametrize("place", ["/proc/headway", "/dev/null"])
def test_a_cache_that_cannot_be_written(
    cache: Path, packed: Path, plain: torch.Tensor, monkeypatch: pytest.MonkeyPatch, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", place)
    assert torch.equal(logits(loaded(packed)), plain)
    assert "not kept" in caplog.text or "made again" in caplog.text


def test_a_read_only_cache_that_has_the_weights(cache: Path, packed: Path, plain: torch.Tensor, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(packed)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Read-only file system")

    for name in ("os.utime", "pathlib.Path.mkdir", "pathlib.Path.write_text", "pathlib.Path.unlink"):
        monkeypatch.setattr(name, refused)
    reads.clear()
    assert torch.equal(logits(loaded(packed)), plain)
    assert reads == []


def test_a_load_that_fails_leaves_nothing_behind(cache: Path, packed: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("the machine is on fire")

    monkeypatch.setattr("headway.models.fill.module_at", failing)
    with pytest.raises(RuntimeError, match="on fire"):
        loaded(packed)
    assert kept(cache) == []
    monkeypatch.undo()


def test_whoever_comes_second_does_not_wait(cache: Path, packed: Path, plain: torch.Tensor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    loaded(packed)
    (path,) = kept(cache)
    path.unlink()
    with preparing(path) as mine:
        assert mine
        found: list[torch.Tensor] = []
        other = threading.Thread(target=lambda: found.append(logits(loaded(packed))))
        other.start()
        other.join()
        assert torch.equal(found[0], plain)
        assert kept(cache) == []
        assert "another process is preparing" in caplog.text
    loaded(packed)
    assert kept(cache) == [path]


_START = """
import sys, torch
import headway.models.prepared.identity as identity
identity.SMALLEST_BYTES = 1
from tests.models.prepared.conftest import loaded, logits
sys.stdin.read(1)
print(logits(loaded(sys.argv[1])).double().sum().item())
"""


@pytest.mark.e2e
def test_processes_that_start_at_once(cache: Path, packed: Path, plain: torch.Tensor) -> None:
    starts = [
        subprocess.Popen([sys.executable, "-c", _START, str(packed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for start in starts:
        assert start.stdin is not None
        start.stdin.write("x")
        start.stdin.flush()
    answers = {start.communicate()[0].strip() for start in starts}
    assert answers == {str(plain.double().sum().item())}
    assert [path.suffix for path in kept(cache)] == [".safetensors"]


def test_what_a_killed_process_left_is_removed(cache: Path, packed: Path) -> None:
    loaded(packed)
    (path,) = kept(cache)
    path.unlink()
    path.with_suffix(".99999.part").write_bytes(b"half")
    old = cache / "other.1.part"
    old.write_bytes(b"half")
    os.utime(old, (0, 0))
    running = cache / "third.1.part"
    running.write_bytes(b"half")
    loaded(packed)
    assert kept(cache) == sorted([path, running])


def test_the_least_recently_used_make_room(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(bytes(100))
        os.utime(path, (1000 + number, 5000 - number))
    assert make_room(tmp_path, 100, 350)
    assert [path.name for path in kept(tmp_path)] == ["b.safetensors", "c.safetensors"]
    assert make_room(tmp_path, 350, 350)
    assert kept(tmp_path) == []
    assert not make_room(tmp_path, 351, 350)


def test_use_is_noted_also_where_the_system_does_not(cache: Path, packed: Path) -> None:
    loaded(packed)
    (path,) = kept(cache)
    future = 4 * 10**18
    os.utime(path, ns=(future, path.stat().st_mtime_ns))
    loaded(packed)
    assert path.stat().st_atime_ns < future


def test_the_limit(cache: Path, packed: Path, plain: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_PREPARED_WEIGHTS", "10k")
    monkeypatch.setattr("headway.models.prepared.identity.remembered_sha256", None)  # a model that is too large is not hashed
    assert torch.equal(logits(loaded(packed)), plain)
    assert kept(cache) == []
    assert path_of("x").parent == cache
