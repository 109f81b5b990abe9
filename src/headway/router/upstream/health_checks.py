"""Active health checks: a GET to each backend that asks for it, again and again, beside the requests."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable

import aiohttp
from yarl import URL

from headway.router.metrics.registry import RouterMetrics
from headway.router.upstream.backend import Backend
from headway.router.upstream.connections import Connections
from headway.router.upstream.health import BackendState
from headway.router.upstream.reliability import Reliability

_log = logging.getLogger(__name__)
FAILURES_TO_UNHEALTHY = 2


class HealthCheck:
    """One backend's. Two failures in a row make it unhealthy, one success healthy again; any 2xx is a success."""

    def __init__(self, backend: Backend, state: BackendState, reliability: Reliability, connections: Connections, metrics: RouterMetrics):
        assert reliability.health_path is not None
        self._backend, self._state, self._reliability = backend, state, reliability
        self._url = URL(backend.base, encoded=True).with_path(reliability.health_path, encoded=True)
        self._connections, self._metrics = connections, metrics
        self._failures = 0

    async def run(self) -> None:
        """Until cancelled. The first check comes at once, those after it at a varied interval, so that backends are not checked in step."""
        while True:
            self._note(await self.check())
            await asyncio.sleep(self._reliability.health_interval * random.uniform(0.9, 1.1))

    async def check(self) -> bool:
        try:
            async with asyncio.timeout(self._reliability.health_timeout):
                response = await self._connections.session(self._backend.socket).get(self._url, headers=self._backend.headers, allow_redirects=False)
                async with response:
                    return 200 <= response.status < 300
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    def _note(self, well: bool) -> None:
        before = self._state.healthy
        self._failures = 0 if well else self._failures + 1
        if well:
            self._state.healthy = True
        elif self._failures >= FAILURES_TO_UNHEALTHY:
            self._state.healthy = False
        if self._state.healthy != before:
            _log.warning("backend %s is %s", self._backend.alias, "well again" if well else "not well: it gets no requests while another one does")
        self._metrics.set("vsr_upstream_healthy", float(self._state.healthy), self._backend.model, self._backend.alias)


class HealthChecks:
    """Those of one generation."""

    def __init__(self, checks: Iterable[HealthCheck]):
        self._checks = list(checks)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(check.run()) for check in self._checks]

    async def close(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
