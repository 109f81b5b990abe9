"""A watched file is seen whole, however it is written: in place and slowly, by rename, through a symbolic link."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headway.router.process import watching
from headway.router.process.watching import Change, contents


def seen_while(path: Path, act: Callable[[], Awaitable[None]], count: int, others: list[Path] | None = None) -> list[Change]:
    """The first `count` changes that are noticed while `act` runs."""

    async def scenario() -> list[Change]:
        stop, found = asyncio.Event(), list[Change]()

        async def watch() -> None:
            async for change in contents(path, path.read_bytes(), lambda: others or [], stop):
                found.append(change)
                if len(found) == count:
                    return

        task = asyncio.create_task(watch())
        await asyncio.sleep(0.15)  # the watch is on
        await act()
        async with asyncio.timeout(20):
            await task
        return found

    return asyncio.run(scenario())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text("one: 1\n")
    return path


def test_a_rename_is_seen(file: Path) -> None:
    async def act() -> None:
        beside = file.with_name("new")
        beside.write_text("two: 2\n")
        beside.replace(file)

    assert seen_while(file, act, 1) == [Change(b"two: 2\n")]


def test_a_slow_write_in_place_is_seen_once_and_whole(file: Path) -> None:
    async def act() -> None:
        with file.open("w") as out:
            for line in range(10):
                out.write(f"line{line}: 1\n")
                out.flush()
                await asyncio.sleep(0.05)

    [change] = seen_while(file, act, 1)
    assert change.content == "".join(f"line{line}: 1\n" for line in range(10)).encode()


def test_a_link_that_leads_elsewhere_is_seen(tmp_path: Path) -> None:
    for version in ("a", "b"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "config.yaml").write_text(f"version: {version}\n")
    (tmp_path / "current").symlink_to("a")
    path = tmp_path / "config.yaml"
    path.symlink_to("current/config.yaml")

    async def act() -> None:
        (tmp_path / "next").symlink_to("b")
        (tmp_path / "next").replace(tmp_path / "current")

    assert seen_while(path, act, 1) == [Change(b"version: b\n")]


def test_a_file_that_vanishes_for_a_while_is_waited_for(file: Path) -> None:
    async def act() -> None:
        file.unlink()
        await asyncio.sleep(0.2)
        file.write_text("back: 1\n")

    assert seen_while(file, act, 1) == [Change(b"back: 1\n")]


def test_a_file_that_is_referred_to_counts_as_a_change(file: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("old")

    async def act() -> None:
        key.write_text("newer")

    assert seen_while(file, act, 1, [key]) == [Change(b"one: 1\n", beside=True)]


def test_without_notices_of_the_system_a_change_is_still_seen(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at every interval: here the folder that would tell is not the one that is watched."""
    monkeypatch.setattr(watching, "_LOOK_MS", 50)
    monkeypatch.setattr(watching, "awatch", lambda *folders, **options: _ticks(options["stop_event"]))

    async def act() -> None:
        file.write_text("two: 2\n")

    assert seen_while(file, act, 1) == [Change(b"two: 2\n")]


async def _ticks(stop: asyncio.Event):  # type: ignore[no-untyped-def]
    while not stop.is_set():
        await asyncio.sleep(0.05)
        yield set()
