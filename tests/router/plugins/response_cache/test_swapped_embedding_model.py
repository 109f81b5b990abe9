"""Vectors of one embedding model are never compared with those of another, on every backend, across restarts."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.router.plugins.response_cache.backends import LASTING, cache, settings_of
from tests.router.plugins.rig import Rig, run
from tests.router.scripted_calls import ScriptedCalls

QUESTION = "what is the capital of spain"
SWAPS = ["model-b@1/384", "model-a@2/384", "model-a@1/256", "model-a@1/384/cls"]


def model(representation: str) -> ScriptedCalls:
    width = 256 if "256" in representation else 384
    vector = list(np.full(width, 1 / np.sqrt(width)))
    return ScriptedCalls(vectors=lambda _: vector, representation=representation)


@pytest.mark.parametrize("swapped", SWAPS)
@pytest.mark.parametrize("backend", LASTING)
def test_foreign_entries_are_neither_hit_nor_deleted(tmp_path: Path, backend: str, swapped: str) -> None:
    async def work() -> None:
        with settings_of(backend) as settings:

            async def ask(representation: str) -> tuple[str, Any]:
                rig = Rig(tmp_path, cache(), settings=settings, models=model(representation))
                told = await rig.ask(QUESTION)
                gauge = {name: rig.services.metrics.value("headway_cache_held_entries", name) for name in ("current", "foreign")}
                await rig.services.close()
                return told.path, gauge

            assert await ask("model-a@1/384") == ("upstream", {"current": 1, "foreign": 0})
            assert await ask(swapped) == ("upstream", {"current": 1, "foreign": 1})
            assert await ask(swapped) == ("cache", {"current": 1, "foreign": 1})
            assert await ask("model-a@1/384") == ("cache", {"current": 1, "foreign": 1})

    run(work)


def test_a_damaged_file_is_put_aside_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        with settings_of("sqlite") as settings:
            first = Rig(tmp_path, cache(), settings=settings)
            await first.ask(QUESTION)
            await first.services.close()
            file = tmp_path / "response-cache.sqlite"
            data = bytearray(file.read_bytes())
            data[:200] = b"x" * 200
            file.write_bytes(bytes(data))
            second = Rig(tmp_path, cache(), settings=settings)
            assert (await second.ask(QUESTION)).path == "upstream"
            await second.services.close()

    run(work)
    assert [path.name for path in tmp_path.glob("*.damaged-*")]
    assert "is damaged" in caplog.text


def test_a_damaged_entry_is_skipped_and_the_others_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        with settings_of("sqlite") as settings:
            first = Rig(tmp_path, cache(), settings=settings)
            for question in ("what is rain", "what is snow"):
                await first.ask(question)
            await first.services.close()
            with sqlite3.connect(tmp_path / "response-cache.sqlite") as database:
                database.execute("UPDATE entries SET vector = ? WHERE CAST(facts AS TEXT) LIKE '%rain%'", (b"\x00\x00\xc0\x7f" * 4,))
            database.close()
            second = Rig(tmp_path, cache(), settings=settings)
            assert (await second.ask("what is rain")).path == "upstream"
            assert (await second.ask("what is snow")).path == "cache"
            await second.services.close()

    run(work)
    assert "1 entries of the response cache are damaged" in caplog.text
