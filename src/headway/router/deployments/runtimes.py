"""Runtimes: all workers of the process. A generation opens a pool for each deployment; a worker ends when it is in no pool any more."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from headway.router.deployments.address import Address, address_of
from headway.router.deployments.fit import Requirement
from headway.router.deployments.launching import file_name, launch_of, worker_id
from headway.router.deployments.managed_worker import ManagedWorker
from headway.router.deployments.pool import Pool
from headway.router.deployments.runtime_client import RuntimeClient
from headway.router.deployments.runtime_environment import RuntimeEnvironment, runtime_environment
from headway.router.deployments.socket_folder import private_folder, short_enough
from headway.router.deployments.specification import Specification
from headway.router.deployments.tempo import USUAL, Tempo
from headway.router.deployments.worker import Worker
from headway.router.metrics.registry import RouterMetrics

_OF_A_REPLICA = ("vsr_model_runtime_replica_ready", "vsr_model_runtime_replica_inflight", "vsr_model_runtime_replica_admitted_bytes")


class Runtimes:
    """For one event loop. `environment` is read from the variables when it is first needed."""

    def __init__(self, metrics: RouterMetrics, environment: RuntimeEnvironment | None = None, tempo: Tempo = USUAL) -> None:
        self.metrics, self.tempo = metrics, tempo
        self._environment = environment
        self._workers: dict[str, Worker] = {}
        self._borrowers: dict[str, int] = {}
        self._ending: dict[str, asyncio.Future[None]] = {}  # workers that are stopping, by id
        self._pools: list[Pool] = []
        self._watchers: set[Callable[[], None]] = set()
        self._folders: list[Path] = []

    @property
    def environment(self) -> RuntimeEnvironment:
        """Raises ConfigError for a variable that cannot be used."""
        if self._environment is None:
            self._environment = runtime_environment()
        return self._environment

    def open_pool(self, specification: Specification, requirements: Sequence[Requirement] = ()) -> Pool:
        """Its workers are those of an equal specification where there are any; others start now. Raises ConfigError."""
        ids = [worker_id(specification, ordinal, self.environment) for ordinal in range(len(specification.replicas))]
        new = {id: self._made(specification, ordinal, id) for ordinal, id in enumerate(ids) if id not in self._workers}
        for worker in new.values():  # only now: when one of them cannot be made, none is left behind
            worker.on_change = self._changed
            worker.start(self._ending.get(worker.id))
        self._workers |= new
        for id in ids:
            self._borrowers[id] = self._borrowers.get(id, 0) + 1
        workers = [self._workers[id] for id in ids]
        pool = Pool(specification, workers, self.metrics, requirements)
        self._pools.append(pool)
        self._changed()
        return pool

    async def close_pools(self, pools: Sequence[Pool]) -> None:
        """Workers that no other pool has end; what is told of what is gone is forgotten."""
        ending: list[tuple[str, Worker]] = []
        for pool in pools:
            self._pools.remove(pool)
            for worker in pool.workers:
                self._borrowers[worker.id] -= 1
                if self._borrowers[worker.id] == 0:
                    del self._borrowers[worker.id]
                    ending.append((pool.name, self._workers.pop(worker.id)))
        for _, worker in ending:
            self._ending[worker.id] = asyncio.ensure_future(self._end(worker))
        await asyncio.gather(*(self._ending[worker.id] for _, worker in ending))
        for name, worker in ending:
            for family in _OF_A_REPLICA:
                self.metrics.forget(family, name, worker.id)
        for name in {pool.name for pool in pools} - {pool.name for pool in self._pools}:
            self.metrics.forget("vsr_model_runtime_ready", name)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call it whenever anything about any worker changes."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        self._watchers.discard(watcher)

    async def close(self) -> None:
        """End everything that is left."""
        workers, self._workers = list(self._workers.values()), {}
        self._borrowers.clear()
        self._pools.clear()
        await asyncio.gather(*(worker.stop() for worker in workers), *self._ending.values())
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        self._folders.clear()

    async def _end(self, worker: Worker) -> None:
        try:
            await worker.stop()
        finally:
            self._ending.pop(worker.id, None)

    def _changed(self) -> None:
        """Something about a worker is different: look which may answer, show it, tell who watches."""
        ready: dict[str, bool] = {}
        for pool in self._pools:
            pool.check()
            ready[pool.name] = ready.get(pool.name, False) or pool.ready  # a reload has two pools of a name for a while
            for worker in pool.workers:
                self.metrics.set("vsr_model_runtime_replica_ready", float(pool.state_of(worker).ready), pool.name, worker.id)
        for name, is_ready in ready.items():
            self.metrics.set("vsr_model_runtime_ready", float(is_ready), name)
        for watcher in list(self._watchers):
            watcher()

    def _made(self, specification: Specification, ordinal: int, id: str) -> Worker:
        replica = specification.replicas[ordinal]
        if replica.endpoint is not None:
            client = RuntimeClient(address_of(replica.endpoint), self.environment.key)
            return Worker(id, client, replica.served_name, replica.device, self.tempo)
        name = file_name(specification, id)
        launch = launch_of(specification, replica, self._folder(f"{name}.models.json"), name, self.environment)
        client = RuntimeClient(Address("http://runtime", str(launch.socket)), self.environment.key)

        def restarted() -> None:
            self.metrics.count("vsr_model_runtime_restarts", specification.name)

        return ManagedWorker(id, client, replica.served_name, replica.device, self.tempo, launch, f"{specification.name} ({id})", restarted)

    def _folder(self, name: str) -> Path:
        """Made once. What we made ourselves goes with us."""
        given = self.environment.folder
        if not self._folders:
            folder = short_enough(private_folder(given), name)
            if folder == given:
                return folder
            self._folders.append(folder)
        return self._folders[0]
