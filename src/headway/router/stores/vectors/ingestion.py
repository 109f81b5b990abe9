"""Ingestion: reading files into vector stores beside the requests, a few at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from headway.errors import HeadwayError
from headway.router.deployments.calls import Unanswered
from headway.router.embedding.embedder import Matrix
from headway.router.stores.vectors.chunking import Chunking, pieces, text_of_file
from headway.router.stores.vectors.store import VectorStores

_LOG = logging.getLogger(__name__)
_BATCH = 32  # pieces of one call
Embed = Callable[[Sequence[str]], Awaitable[tuple[Matrix, str] | Unanswered]]
"""Vectors of texts [texts, width], each read in full, and the representation that made them."""


class Ingestion:
    """`workers` files are read at a time. A file that cannot be read is `failed` with the reason, and harms no other."""

    def __init__(self, stores: VectorStores, workers: int, most_chunks: int) -> None:
        self._stores = stores
        self._slots = asyncio.Semaphore(workers)
        self._most = most_chunks
        self._running: set[asyncio.Task[None]] = set()

    def start(self, store: str, file: str, chunking: Chunking, embed: Embed) -> None:
        task = asyncio.create_task(self._read(store, file, chunking, embed))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def drain(self, seconds: float) -> None:
        """Wait for what is being read, then give up on the rest."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        for task in list(self._running):
            task.cancel()

    async def _read(self, store: str, file: str, chunking: Chunking, embed: Embed) -> None:
        async with self._slots:
            try:
                await self._ingest(store, file, chunking, embed)
            except HeadwayError as error:
                await asyncio.to_thread(self._stores.fail, store, file, error.message)
            except Exception as error:
                _LOG.exception("a file could not be read into vector store %s", store)
                await asyncio.to_thread(self._stores.fail, store, file, f"the router failed: {type(error).__name__}")

    async def _ingest(self, store: str, file: str, chunking: Chunking, embed: Embed) -> None:
        name = self._stores.file(file).name
        content = await asyncio.to_thread(self._stores.content, file)
        texts = await asyncio.to_thread(lambda: pieces(text_of_file(name, content), chunking))
        if not texts:
            raise IngestionError(f"{name} has no text")
        if self._stores.chunk_count(store) + len(texts) > self._most:
            raise IngestionError(f"{name} has {len(texts)} pieces, and the store may have {self._most} in all")
        vectors, representation = [], ""
        for start in range(0, len(texts), _BATCH):
            made = await embed(texts[start : start + _BATCH])
            if isinstance(made, Unanswered):
                raise IngestionError(f"the embedding model did not answer: {made.reason}")
            if representation not in ("", made[1]):
                raise IngestionError("the embedding model changed while the file was read")
            representation = made[1]
            vectors += list(made[0])
        await asyncio.to_thread(self._stores.finish, store, file, texts, representation, vectors)


class IngestionError(HeadwayError):
    """A file could not be read into a vector store."""

    reason = "ingestion_failed"
