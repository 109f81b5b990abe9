"""KVTransfer: what an engine gives to others and takes from them. Lives on the event loops that ask; blocks change hands on the engine's thread."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from headway.engine.compute_dtype import compute_dtype
from headway.engine.config import EngineConfig
from headway.engine.kv_transfer.landing import Landing, LandingRoom
from headway.engine.kv_transfer.layout import layout_of
from headway.engine.kv_transfer.leases import Leases
from headway.engine.kv_transfer.params import PARAM, RemotePrefill, TransferParams
from headway.engine.kv_transfer.pull import Pull
from headway.engine.kv_transfer.sender import MOST_HASHES, Sender
from headway.engine.kv_transfer.settings import KEY_VARIABLE, TransferSettings
from headway.engine.kv_transfer.settings import PARAM as FLAG
from headway.engine.kv_transfer.shared_key import is_loopback, shared_key
from headway.engine.loading import LoadedEngine
from headway.engine.scheduler import reads_cache
from headway.engine.sequence import Request, Sequence
from headway.errors import ArtifactError, ConfigError, NotBuiltError, RequestError, TransferError
from headway.kvcache.block_hash import BlockHash
from headway.kvcache.offload.block_images import BlockImages
from headway.telemetry.log_rate import AtMostEvery
from headway.telemetry.transfer_stats import TransferStats

_log = logging.getLogger(__name__)
_log.addFilter(AtMostEvery(10))
MOST_PULLS: Final = 8  # at a time; others wait, within their time

Post = Callable[[Callable[[], None]], None]  # runs something on the engine's thread, between two steps
Observe = Callable[[TransferStats], None]


def start_transfer(config: EngineConfig, loaded: LoadedEngine, post: Post, observe: Observe) -> KVTransfer | None:
    """None without --kv-transfer-config. Raises ConfigError, NotBuiltError, ArtifactError."""
    settings = config.kv_transfer
    return None if settings is None else KVTransfer(config, settings, loaded, post, observe)


async def prepare_transfer(transfer: KVTransfer | None, request: Request, params: TransferParams) -> None:
    """Do what `params` ask for before the engine gets the request. Raises RequestError when this server does not do that, and
    TransferError where a prompt that cannot be pulled shall fail; otherwise such a prompt is computed."""
    if transfer is None:
        raise RequestError(f"{PARAM} asks to move KV blocks, which this server does not do", param=PARAM, fix="Start it with --kv-transfer-config.")
    await transfer.prepare(request, params)


class KVTransfer:
    """See `prepare`. `observe` is called on several threads."""

    def __init__(self, config: EngineConfig, settings: TransferSettings, loaded: LoadedEngine, post: Post, observe: Observe):
        core = self._core = loaded.core
        self._settings, self._observe = settings, observe
        self._kv = core.scheduler.kv
        storage = core.runner.kv
        if storage.layers[0].device.type != "cpu":
            raise NotBuiltError("--kv-transfer-config is built for CPUs only", param=FLAG, fix="Leave it out.")
        self._key = _checked_key(settings)
        self._images = BlockImages(storage)
        try:
            dtype = str(compute_dtype(config.dtype, loaded.card)).removeprefix("torch.")
            self._layout = layout_of(config, loaded.card, dtype, storage, self._images.nbytes)
        except OSError as error:
            raise ArtifactError(f"the weights of {config.model} cannot be read for their digest: {error.strerror}") from None
        self.engine_id: Final = settings.engine_id or str(uuid.uuid4())
        self._room = LandingRoom(settings.buffer_bytes)
        self._pulls: set[Pull] = set()
        self._threads = ThreadPoolExecutor(MOST_PULLS, thread_name_prefix="KVPull")
        self._leases = Leases(self._kv.pool, settings.most_leases, settings.lease_seconds, observe)
        self._sender: Sender | None = None
        if settings.produces:
            self._sender = Sender(
                settings, self.engine_id, self._key, self._layout, self._images, self._leases, sweep=lambda: post(self._sweep), observe=observe
            )
            self._kv.give_back = self._leases.drop_oldest
            _log.info("KV transfer: engine %s sends blocks from %s:%d, %s", self.engine_id, settings.host, self._sender.port, _manner(self._key))
        if settings.consumes:
            _log.info("KV transfer: prompts that other engines computed are pulled, %s", _manner(self._key))

    def close(self) -> None:
        """On the engine's thread: end all transfers, give all blocks back. Idempotent; returns within a second."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for pull in list(self._pulls):
            pull.abort()
        if self._sender is not None:
            self._sender.close()
        self._leases.close()

    async def prepare(self, request: Request, params: TransferParams) -> None:
        """See `prepare_transfer`."""
        if params.keeps:
            if self._sender is None:
                raise RequestError(f"{PARAM}: do_remote_decode goes to a producer, and this server is a consumer", param=PARAM)
            request.hand_over = self._keep
        if params.source is not None:
            if not self._settings.consumes:
                raise RequestError(f"{PARAM}: do_remote_prefill goes to a consumer, and this server is a producer", param=PARAM)
            await self._fetch(request, params.source)

    # ---- producer --------------------------------------------------------------------------------------------------

    def _keep(self, sequence: Sequence) -> dict[str, Any] | None:
        """On the engine's thread, for a sequence that ends: what a consumer needs to know; None when no block is full."""
        assert self._sender is not None
        full = sequence.num_prompt // self._kv.block_size
        hashes = self._kv.hashes(sequence.table, sequence.hashes, sequence.tokens)
        lease = self._leases.keep(sequence.table.blocks[:full], hashes[:full])
        if lease is None:
            return None
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_engine_id": self.engine_id,
            "remote_request_id": lease.id,
            "remote_block_ids": [lease.blocks],
            "remote_host": self._settings.host,
            "remote_port": self._sender.port,
            "tp_size": 1,
        }

    def _sweep(self) -> None:
        self._leases.sweep()
        self._core.observe_idle()

    # ---- consumer --------------------------------------------------------------------------------------------------

    async def _fetch(self, request: Request, source: RemotePrefill) -> None:
        """Bring the full blocks of the prompt here, but for those that the cache has."""
        sequence = request.sequences[0]
        if not reads_cache(sequence):
            return
        hashes = self._kv.hashes(sequence.table, sequence.hashes, sequence.tokens)
        chain = hashes[: min((sequence.num_tokens - 1) // self._kv.block_size, MOST_HASHES)]
        first = self._kv.known_blocks(chain)
        if first == len(chain):
            return
        try:
            request.landing = await self._pulled(source, chain, first, request.deadline)
        except TransferError as error:
            self._observe(TransferStats(error.reason))
            if self._settings.fails:
                raise
            _log.warning("KV transfer: a prompt of %d tokens is computed here, since %s [%s]", sequence.num_tokens, error.message, error.reason)

    async def _pulled(self, source: RemotePrefill, chain: list[BlockHash], first: int, until: float | None) -> Landing:
        started = time.monotonic()
        taken = (len(chain) - first) * self._images.nbytes
        if not self._room.take(taken):
            raise TransferError("too many pulled blocks wait for their place (kv_buffer_size)", reason="buffer_full")
        deadline = started + self._settings.pull_seconds
        pull = Pull(source, self._layout, self._key, deadline if until is None else min(until, deadline))
        self._pulls.add(pull)
        landed = False
        try:
            rows = await asyncio.wrap_future(self._threads.submit(pull.run, chain, first))
            landing = Landing(self._images, chain[first : first + len(rows)], rows, self._room, taken)
            landed = True
        except RuntimeError:
            raise TransferError("the engine is shutting down", reason="aborted") from None
        finally:
            pull.abort()
            self._pulls.discard(pull)
            if not landed:
                self._room.give(taken)
        self._observe(TransferStats("pulled", seconds=time.monotonic() - started, nbytes=rows.nbytes))
        return landing


def _checked_key(settings: TransferSettings) -> bytes:
    key = shared_key()
    if settings.produces and not key and not _stays_here(settings.host):
        raise ConfigError(
            f"{FLAG}: kv_ip {settings.host} can be reached from other hosts, and no key protects the blocks", reason="kv_transfer_key_missing", param=KEY_VARIABLE,
            fix=f"Set {KEY_VARIABLE} to the same random text at both ends.",
        )  # fmt: skip
    return key


def _stays_here(host: str) -> bool:
    try:
        return is_loopback(host)
    except ValueError:
        return host == "localhost"


def _manner(key: bytes) -> str:
    return "with a key" if key else f"on this host only ({KEY_VARIABLE} is not set)"
