"""Services: what outlives a generation. One object for the process, made at its start."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from headway.router.deployments.runtimes import Runtimes
from headway.router.embedding.memo import VectorMemo
from headway.router.generation.background import Background
from headway.router.generation.shared_stores import SharedStores
from headway.router.listener.rate_limits import RateWindows
from headway.router.listener.session_turns import LastModels
from headway.router.metrics.registry import RouterMetrics
from headway.router.prefixes.followers import Followers
from headway.router.protocols.responses.stores import ResponseStores
from headway.router.selection.affinity.memory import ModelMemory
from headway.router.spend.ledger import SpendLedger
from headway.router.spend.reservations import Reservations
from headway.router.stores.replays.opened import OpenReplays
from headway.router.stores.response_cache.opened import ResponseCaches
from headway.router.stores.vectors.opened import OpenVectorStores
from headway.router.upstream.activity import ModelActivity
from headway.router.upstream.circuit import Circuits
from headway.router.upstream.connections import Connections
from headway.router.upstream.health import BackendStates
from headway.router.upstream.latencies import LatencyBook


@dataclass(slots=True)
class Services:
    """Owners add their stores here, each made once: response cache, replays, vectors, latencies, spend, runtimes, the client session.

    `state` is a folder (0700) for files that outlive the process: configuration versions, replays, spend.
    """

    state: Path
    metrics: RouterMetrics = field(default_factory=RouterMetrics)
    spend: SpendLedger = field(init=False)
    reservations: Reservations = field(default_factory=Reservations)
    rate_windows: RateWindows = field(default_factory=RateWindows)
    last_models: LastModels = field(default_factory=LastModels)
    session_models: ModelMemory = field(default_factory=ModelMemory)
    responses: ResponseStores = field(init=False)
    runtimes: Runtimes = field(init=False)
    vectors: VectorMemo = field(default_factory=VectorMemo)
    response_caches: ResponseCaches = field(init=False)
    vector_stores: OpenVectorStores = field(default_factory=OpenVectorStores)
    shared: SharedStores = field(init=False)
    replays: OpenReplays = field(init=False)
    background: Background = field(default_factory=Background)
    connections: Connections = field(default_factory=Connections)
    backends: BackendStates = field(default_factory=BackendStates)
    activity: ModelActivity = field(default_factory=ModelActivity)
    circuits: Circuits = field(default_factory=Circuits)
    latencies: LatencyBook = field(default_factory=LatencyBook)
    followers: Followers = field(init=False)

    def __post_init__(self) -> None:
        self.spend = SpendLedger(self.state)
        self.runtimes = Runtimes(self.metrics)
        self.followers = Followers(self.metrics)
        self.responses = ResponseStores(self.metrics)
        self.shared = SharedStores(self.metrics)
        self.replays = OpenReplays(self.metrics)
        self.response_caches = ResponseCaches(self.metrics)

    async def close(self) -> None:
        """For the end of the process, when no request runs any more."""
        await self.background.close()
        await self.vector_stores.close()
        await self.runtimes.close()
        await self.followers.close()
        await self.connections.close()
        await self.response_caches.close()
        await self.responses.close()
        await self.shared.close()
        await asyncio.to_thread(self.replays.close)
        await asyncio.to_thread(self.spend.close)
