"""Making stored vectors again after the embedding model changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.router.deployments.calls import Unanswered
from headway.router.stores.response_cache.entry import Entry
from headway.router.stores.response_cache.store import CacheStore
from headway.router.stores.vectors.ingestion import Embed
from headway.router.stores.vectors.store import VectorStores

_BATCH = 32


@dataclass(frozen=True, slots=True)
class Reembedded:
    """`failed`: the model did not answer, or not in full; they stay as they were and can be tried again. `stopped` tells why the rest was not tried."""

    done: int = 0
    failed: int = 0
    stopped: str | None = None


async def reembed_cache(store: CacheStore, entries: Sequence[Entry], embed: Embed) -> Reembedded:
    """Of `entries` those with vectors of another representation than `embed` makes now; all else of them stays. Where the same request was answered
    again in the meantime, the newer entry stays and the older one goes."""
    done = 0
    waiting = [entry for entry in entries if entry.vector is not None]
    for start in range(0, len(waiting), _BATCH):
        batch = waiting[start : start + _BATCH]
        made = await embed([entry.query for entry in batch])
        if isinstance(made, Unanswered):
            return Reembedded(done, len(waiting) - start, made.reason)
        vectors, representation = made
        for entry, vector in zip(batch, vectors, strict=True):
            if entry.representation == representation:
                continue
            newer = await store.same(entry.partition, entry.exact, representation)
            await store.remove([entry.id])
            if newer is None or newer.representation != representation:
                await store.keep(replace(entry, representation=representation, vector=np.ascontiguousarray(vector)))
            done += 1
    return Reembedded(done)


async def reembed_documents(stores: VectorStores, embed: Embed) -> Reembedded:
    """All pieces of all vector stores."""
    done = 0
    probe = await embed(["probe"])
    if isinstance(probe, Unanswered):
        return Reembedded(0, sum(stores.counts().values()), probe.reason)
    representation = probe[1]
    while waiting := await asyncio.to_thread(stores.foreign, representation, _BATCH):
        made = await embed([text for _, text in waiting])
        if isinstance(made, Unanswered) or made[1] != representation:
            left = sum(count for name, count in stores.counts().items() if name != representation)
            return Reembedded(done, left, made.reason if isinstance(made, Unanswered) else "the model changed again")
        pairs = [(chunk, np.ascontiguousarray(vector)) for (chunk, _), vector in zip(waiting, made[0], strict=True)]
        await asyncio.to_thread(stores.replace_vectors, representation, pairs)
        done += len(waiting)
    return Reembedded(done)
