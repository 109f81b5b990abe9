"""What every backend of the response cache does alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from headway.router.config.document.stores import Redis
from headway.router.stores.response_cache.entry import Entry
from headway.router.stores.response_cache.local import LocalCache
from headway.router.stores.response_cache.redis_cache import RedisCache
from headway.router.stores.response_cache.sqlite_journal import SqliteJournal
from headway.router.stores.response_cache.store import CacheStore
from tests.router.stores.redis_process import SERVER, redis_server

BACKENDS = ["memory", "sqlite", *(["redis"] if SERVER else [])]
RNG = np.random.default_rng(5)


def unit(width: int = 8) -> Any:
    vector = RNG.standard_normal(width).astype(np.float32)
    return vector / np.linalg.norm(vector)


def entry(name: str, partition: str = "p", representation: str = "r", created: float = 1.0, **fields: Any) -> Entry:
    vector = fields.pop("vector", unit())
    return Entry(name, partition, f"exact-{name}", f"query {name}", b'{"a":1}', created, None, representation if vector is not None else "", vector, **fields)


@asynccontextmanager
async def opened(backend: str, state: Path) -> AsyncIterator[CacheStore]:
    if backend == "redis":
        with redis_server() as (port, _):
            store: CacheStore = RedisCache(Redis.model_validate({"connection": {"host": "127.0.0.1", "port": port}, "index": {"prefix": "t*:"}}))
            yield store
            await store.close()
        return
    store = LocalCache(SqliteJournal(state / "cache.sqlite") if backend == "sqlite" else None)
    yield store
    await store.close()


def on(backend: str, state: Path, work: Callable[[CacheStore], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(20), opened(backend, state) as store:
            await work(store)

    asyncio.run(run())


@pytest.mark.parametrize("backend", BACKENDS)
def test_neighbours_are_those_of_numpy_and_never_of_another_partition_or_representation(tmp_path: Path, backend: str) -> None:
    async def work(store: CacheStore) -> None:
        kept = [entry(f"e{at}", f"p{at % 2}", f"r{at % 3}") for at in range(30)]
        for each in kept:
            await store.keep(each)
        asked = unit()
        for partition in ("p0", "p1", "p2"):
            for representation in ("r0", "r1", "r2", "r3"):
                mine = [each for each in kept if (each.partition, each.representation) == (partition, representation)]
                wanted = sorted(((float(each.vector @ asked), each.id) for each in mine), reverse=True)[:3]
                found = await store.nearest(partition, representation, asked, 3)
                assert [each.id for each, _ in found] == [name for _, name in wanted]
                np.testing.assert_allclose([score for _, score in found], [score for score, _ in wanted], atol=1e-5)
        assert await store.nearest("p0", "r0", unit(16), 3) == []
        assert dict(await store.counts()) == {"r0": 10, "r1": 10, "r2": 10}

    on(backend, tmp_path, work)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_entry_comes_back_as_it_was_kept(tmp_path: Path, backend: str) -> None:
    async def work(store: CacheStore) -> None:
        kept = entry("a", recipe="x", decision="d", model="m", scope="user", warnings=("w",))
        await store.keep(kept)
        found = await store.get("a")
        assert found is not None
        np.testing.assert_array_equal(found.vector, kept.vector)
        assert replace(found, vector=None) == replace(kept, vector=None)
        assert await store.get("b") is None
        plain = entry("b", vector=None)
        await store.keep(plain)
        assert await store.same("p", "exact-b", "any") == plain
        assert await store.same("p", "exact-a", "other") is None
        assert await store.same("q", "exact-a", None) is None

    on(backend, tmp_path, work)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_request_replaces_its_entry_of_the_same_representation_only(tmp_path: Path, backend: str) -> None:
    async def work(store: CacheStore) -> None:
        for name, representation, created in (("old", "r", 1.0), ("foreign", "s", 2.0), ("new", "r", 3.0)):
            await store.keep(replace(entry(name, "p", representation, created), exact="e"))
        assert {each.id for each in await store.entries()} == {"foreign", "new"}
        assert [each.id for each in await store.entries()] == ["new", "foreign"]
        found = [await store.same("p", "e", name) for name in ("r", "s", None)]
        assert [each.id if each else None for each in found] == ["new", "foreign", "new"]

    on(backend, tmp_path, work)


@pytest.mark.parametrize(("eviction", "gone"), [("fifo", "a"), ("lru", "b"), ("lfu", "c")])
@pytest.mark.parametrize("backend", BACKENDS)
def test_eviction(tmp_path: Path, backend: str, eviction: str, gone: str) -> None:
    """a was used twice, then c not at all, b once but before a: fifo takes the oldest, lru the one used longest ago, lfu the one used least."""

    async def work(store: CacheStore) -> None:
        store.limit(3, eviction)
        kept = [entry(name, created=time.time() - 10 + at) for at, name in enumerate("abc")]
        for each in kept:
            await store.keep(each)
        if eviction == "lru":
            await store.used(kept[2])
        for at in (1, 0, 0):
            if eviction != "lru" or at == 0:
                await store.used(kept[at])
        await store.keep(entry("d", created=time.time()))
        assert {each.id for each in await store.entries()} == set("abcd") - {gone}
        assert await store.nearest("p", "r", kept["abc".index(gone)].vector, 1) != []
        assert gone not in [each.id for each, _ in await store.nearest("p", "r", unit(), 9)]

    on(backend, tmp_path, work)


@pytest.mark.parametrize("backend", BACKENDS)
def test_removing_and_clearing_leave_nothing_behind(tmp_path: Path, backend: str) -> None:
    async def work(store: CacheStore) -> None:
        if isinstance(store, RedisCache):
            other = redis.Redis(port=store._link._client.connection_pool.connection_kwargs["port"])
            other.set("tx:somebody else's", 1)
        for name in "abc":
            await store.keep(entry(name))
        assert await store.remove(["a", "zzz"]) == 1
        assert {each.id for each in await store.entries()} == {"b", "c"}
        assert await store.clear() == 2
        assert (list(await store.entries()), dict(await store.counts())) == ([], {})
        assert await store.nearest("p", "r", unit(), 3) == []
        assert await store.trouble() is None
        if isinstance(store, RedisCache):
            assert other.keys("*") == [b"tx:somebody else's"]

    on(backend, tmp_path, work)


def test_many_entries_are_found_through_the_graph(tmp_path: Path) -> None:
    async def work(store: CacheStore) -> None:
        kept = [entry(f"e{at}", vector=unit(32)) for at in range(700)]
        for each in kept:
            await store.keep(each)
        hits = [(await store.nearest("p", "r", each.vector, 1))[0] for each in kept[::50]]
        assert [each.id for each, _ in hits] == [each.id for each in kept[::50]]
        assert all(score > 0.999 for _, score in hits)
        await store.remove([kept[0].id])
        assert kept[0].id not in [each.id for each, _ in await store.nearest("p", "r", kept[0].vector, 5)]

    on("memory", tmp_path, work)


def test_a_journal_that_cannot_be_written_is_said_and_the_cache_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        journal = SqliteJournal(tmp_path / "cache.sqlite")
        store = LocalCache(journal)
        journal._database.execute("DROP TABLE entries")
        await store.keep(entry("a"))
        assert (await store.get("a")) is not None
        assert "no such table" in str(await store.trouble())

    asyncio.run(work())
    assert "cannot be written" in caplog.text


def test_vectors_that_do_not_belong_are_refused() -> None:
    from headway.router.stores.nearest import Nearest

    index = Nearest()
    index.add(1, unit(4))
    with pytest.raises(ValueError, match="does not belong"):
        index.add(2, unit(5))
    with pytest.raises(ValueError, match="not finite"):
        index.add(3, np.full(4, np.nan, np.float32))


@pytest.mark.parametrize("backend", BACKENDS[2:])
def test_in_redis_entries_live_by_its_clock_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """A router whose clock is a day ahead still finds what another one keeps for an hour, and the other way round."""

    async def work(store: CacheStore) -> None:
        real = time.time
        for name, ahead in (("behind", 0.0), ("ahead", 86400.0)):
            monkeypatch.setattr(time, "time", lambda ahead=ahead: real() + ahead)
            await store.keep(replace(entry(name, created=time.time()), expires=time.time() + 3600))
        for ahead in (0.0, 86400.0, -86400.0):
            monkeypatch.setattr(time, "time", lambda ahead=ahead: real() + ahead)
            assert [await store.get(name) is not None for name in ("behind", "ahead")] == [True, True]
        await store.keep(replace(entry("short"), expires=time.time() + 0.05))
        while await store.get("short") is not None:
            await asyncio.sleep(0.01)

    on(backend, tmp_path, work)
