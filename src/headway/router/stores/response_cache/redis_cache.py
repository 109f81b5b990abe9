"""RedisCache: entries in Redis, shared by several routers. Plain commands only: no module for searching is needed."""

from __future__ import annotations

import hashlib
import math
import sys
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from headway.router.config.document.stores import Redis as RedisSettings
from headway.router.stores.nearest import Vector
from headway.router.stores.redis_link import Redis, RedisLink
from headway.router.stores.response_cache.entry import Entry, entry_of, facts_of, vector_bytes

_COMPARED = 1024  # newest entries of a partition that a lookup compares with
_VECTORS_HELD = 8192  # entries never change, so vectors that were read once are kept here
_BATCH = 64  # entries of one round trip where many are read or removed
_FIELDS = ("facts", "body", "vector")


class RedisCache:
    """How long an entry lives Redis measures: clocks of routers may differ.

    Keys under the prefix: `e:<id>` an entry (a hash, which Redis itself lets go when its time is over); `s:<hash>` the ids of one request by
    representation; `v:<hash>` the ids of one partition and representation; `r:<representation>` those of a representation by the end of their
    time; `order` all ids in the order of eviction. Ids whose entry is gone are taken out of the sets when they are met. `clear` deletes these keys only."""

    backend = "redis"

    def __init__(self, settings: RedisSettings, link: RedisLink | None = None) -> None:
        self._link = link or RedisLink(settings.connection)
        self._prefix = settings.index.prefix
        self._eviction = "fifo"
        self._max_entries = sys.maxsize
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def limit(self, max_entries: int, eviction: str) -> None:
        self._max_entries, self._eviction = max_entries, eviction

    async def same(self, partition: str, exact: str, representation: str | None) -> Entry | None:
        async def ask(redis: Redis) -> Entry | None:
            found = {name.decode(): value.decode() for name, value in (await redis.hgetall(self._same_key(partition, exact))).items()}
            names = list(found) if representation is None else [representation, ""]
            entries = [await self._read(redis, found[name]) for name in names if name in found]
            return max((each for each in entries if each and each.exact == exact), key=lambda each: each.created, default=None)

        return await self._link.run(ask, None)

    async def nearest(self, partition: str, representation: str, vector: Vector, limit: int) -> Sequence[tuple[Entry, float]]:
        async def ask(redis: Redis) -> Sequence[tuple[Entry, float]]:
            place = self._vectors_key(partition, representation)
            ids = [each.decode() for each in await redis.zrevrange(place, 0, _COMPARED - 1)]
            vectors = await self._read_vectors(redis, place, ids)
            known = [(entry_id, vectors[entry_id]) for entry_id in ids if entry_id in vectors and vectors[entry_id].shape == vector.shape]
            similarities = np.stack([each for _, each in known]) @ vector if known else np.empty(0, np.float32)
            found: list[tuple[Entry, float]] = []
            for at in np.argsort(-similarities, kind="stable")[:limit]:
                entry = await self._read(redis, known[at][0])
                if entry is None:
                    self._vectors.pop(known[at][0], None)
                    await redis.zrem(place, known[at][0])
                elif entry.partition == partition and entry.representation == representation:
                    found.append((entry, float(similarities[at])))
            return found

        return await self._link.run(ask, [])

    async def keep(self, entry: Entry) -> None:
        async def ask(redis: Redis) -> None:
            same = self._same_key(entry.partition, entry.exact)
            before = await redis.hget(same, entry.representation)
            lives = None if entry.expires is None else max(1, int((entry.expires - time.time()) * 1000))
            if before is not None:
                await self._erase(redis, [before.decode()])
            async with redis.pipeline(transaction=True) as pipe:
                pipe.hset(self._key("e", entry.id), mapping={"facts": facts_of(entry), "body": entry.body, "vector": vector_bytes(entry)})
                if lives is not None:
                    pipe.pexpire(self._key("e", entry.id), lives)
                pipe.hset(same, entry.representation, entry.id)
                if lives is None:
                    pipe.persist(same)
                else:
                    pipe.pexpire(same, lives)
                pipe.zadd(self._key("r", entry.representation), {entry.id: entry.expires or math.inf})
                pipe.sadd(self._prefix + "representations", entry.representation)
                pipe.zadd(self._prefix + "order", {entry.id: 0 if self._eviction == "lfu" else entry.created})
                if entry.vector is not None:
                    pipe.zadd(self._vectors_key(entry.partition, entry.representation), {entry.id: entry.created})
                await pipe.execute()
            await self._shrink(redis, entry.id)

        await self._link.run(ask, None)

    async def used(self, entry: Entry) -> None:
        async def ask(redis: Redis) -> None:
            if self._eviction == "lfu":
                await redis.zincrby(self._prefix + "order", 1, entry.id)
            elif self._eviction == "lru":
                await redis.zadd(self._prefix + "order", {entry.id: time.time()}, xx=True)

        await self._link.run(ask, None)

    async def get(self, entry_id: str) -> Entry | None:
        return await self._link.run(lambda redis: self._read(redis, entry_id), None)

    async def remove(self, entry_ids: Collection[str]) -> int:
        """Some at a time, since each command has the connection's timeout."""
        waiting, removed = list(entry_ids), 0
        for start in range(0, len(waiting), _BATCH):
            part = waiting[start : start + _BATCH]
            removed += await self._link.run(partial(self._erase, entry_ids=part), 0)
        return removed

    async def clear(self) -> int:
        async def ask(redis: Redis) -> int:
            count = int(await redis.zcard(self._prefix + "order"))
            keys = [key async for key in redis.scan_iter(match=_literal(self._prefix) + "*", count=1000)]
            for start in range(0, len(keys), 1000):
                await redis.unlink(*keys[start : start + 1000])
            self._vectors.clear()
            return count

        return await self._link.run(ask, 0)

    async def entries(self) -> Sequence[Entry]:
        ids: list[bytes] = await self._link.run(lambda redis: redis.zrange(self._prefix + "order", 0, -1), [])
        found: list[Entry] = []
        for start in range(0, len(ids), _BATCH):
            part = [each.decode() for each in ids[start : start + _BATCH]]
            found += await self._link.run(partial(self._read_all, entry_ids=part), [])
        return sorted(found, key=lambda entry: -entry.created)

    async def counts(self) -> Mapping[str, int]:
        async def ask(redis: Redis) -> Mapping[str, int]:
            names = [each.decode() for each in await redis.smembers(self._prefix + "representations")]
            for name in names:
                await redis.zremrangebyscore(self._key("r", name), "-inf", time.time())
            counted = {name: int(await redis.zcard(self._key("r", name))) for name in names}
            return {name: number for name, number in counted.items() if number}

        return await self._link.run(ask, {})

    async def trouble(self) -> str | None:
        await self._link.run(lambda redis: redis.ping(), False)
        return self._link.trouble

    async def close(self) -> None:
        await self._link.close()

    async def _read(self, redis: Redis, entry_id: str) -> Entry | None:
        return _entry(await redis.hmget(self._key("e", entry_id), _FIELDS))

    async def _read_all(self, redis: Redis, entry_ids: Sequence[str]) -> list[Entry]:
        async with redis.pipeline(transaction=False) as pipe:
            for each in entry_ids:
                pipe.hmget(self._key("e", each), _FIELDS)
            return [entry for found in await pipe.execute() if (entry := _entry(found)) is not None]

    async def _read_vectors(self, redis: Redis, place: str, ids: Sequence[str]) -> Mapping[str, Vector]:
        missing = [each for each in ids if each not in self._vectors]
        if missing:
            async with redis.pipeline(transaction=False) as pipe:
                for each in missing:
                    pipe.hget(self._key("e", each), "vector")
                read = await pipe.execute()
            gone = [each for each, found in zip(missing, read, strict=True) if not found]
            if gone:
                await redis.zrem(place, *gone)
            for each, found in zip(missing, read, strict=True):
                if found and len(found) % 4 == 0:
                    self._vectors[each] = np.frombuffer(found, dtype="<f4").astype(np.float32)
        held = {each: self._vectors[each] for each in ids if each in self._vectors}
        while len(self._vectors) > _VECTORS_HELD:
            self._vectors.popitem(last=False)
        return held

    async def _shrink(self, redis: Redis, newest: str) -> None:
        order = self._prefix + "order"
        over = int(await redis.zcard(order)) - self._max_entries
        if over > 0:
            first = [each.decode() for each in await redis.zrange(order, 0, over)]
            await self._erase(redis, [each for each in first if each != newest][:over])

    async def _erase(self, redis: Redis, entry_ids: Collection[str]) -> int:
        erased = 0
        for entry_id in entry_ids:
            entry = await self._read(redis, entry_id)
            async with redis.pipeline(transaction=True) as pipe:
                pipe.delete(self._key("e", entry_id))
                pipe.zrem(self._prefix + "order", entry_id)
                if entry is not None:
                    pipe.zrem(self._vectors_key(entry.partition, entry.representation), entry_id)
                    pipe.zrem(self._key("r", entry.representation), entry_id)
                    pipe.hdel(self._same_key(entry.partition, entry.exact), entry.representation)
                done: list[Any] = await pipe.execute()
            if entry is None:
                await self._forget_everywhere(redis, entry_id)
            self._vectors.pop(entry_id, None)
            erased += int(done[0])
        return erased

    async def _forget_everywhere(self, redis: Redis, entry_id: str) -> None:
        """Of an entry whose time was over Redis has kept nothing that tells its representation."""
        for name in await redis.smembers(self._prefix + "representations"):
            await redis.zrem(self._key("r", name.decode()), entry_id)

    def _key(self, kind: str, name: str) -> str:
        return f"{self._prefix}{kind}:{name}"

    def _same_key(self, partition: str, exact: str) -> str:
        return self._key("s", _digest(partition, exact))

    def _vectors_key(self, partition: str, representation: str) -> str:
        return self._key("v", _digest(partition, representation))


def _entry(found: Sequence[bytes | None]) -> Entry | None:
    facts, body, vector = found
    if facts is None or body is None:
        return None
    try:
        return entry_of(facts, body, vector)
    except ValueError:  # damaged, or of another program under the same prefix
        return None


def _digest(*parts: str) -> str:
    """Parts with their lengths, so that no two lists of parts read the same."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def _literal(prefix: str) -> str:
    return "".join(f"\\{letter}" if letter in "*?[]\\" else letter for letter in prefix)
