"""RuntimeDeployments: the model deployments of one generation, what they answer and how they are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping

from headway.errors import ConfigError, HeadwayError
from headway.router.config.document.document import Document
from headway.router.config.document.model_catalog import EmbeddingEndpoint
from headway.router.deployments import go_duration, outcome
from headway.router.deployments.bindings import requirements_of
from headway.router.deployments.caller import Caller
from headway.router.deployments.calls import EMBEDDING_ENDPOINT
from headway.router.deployments.card import Card
from headway.router.deployments.embedding_service import EmbeddingService
from headway.router.deployments.fit import MISMATCH
from headway.router.deployments.pool import CallFailed, Pool
from headway.router.deployments.progress import Report, states, waiting_message
from headway.router.deployments.result_cache import ResultCache
from headway.router.deployments.runtime_client import Exchange
from headway.router.deployments.runtimes import Runtimes
from headway.router.deployments.specification import Specification, catalog_of, specifications
from headway.router.deployments.stage import RuntimeStage
from headway.router.deployments.target import Target
from headway.router.deployments.usage import granted
from headway.router.deployments.worker_state import WorkerState
from headway.router.native.grants import Grants, grants_of
from headway.router.request.deadline import Deadline

_NOT_LOOKED_AT = WorkerState()


class ModelNotReadyError(HeadwayError):
    """A deployment of a configuration did not become ready, and never will or not in time."""

    reason = "deployment_not_ready"


def _no_report(message: str, states: object) -> None:
    """For who waits in silence."""



class RuntimeDeployments:
    """`open` works from the beginning; deployments answer once `start` has named them. Everything but the constructor is for the event loop."""

    def __init__(
        self, document: Document, runtimes: Runtimes, environment: Mapping[str, str] = os.environ
    ) -> None:  # fmt: skip
        """Raises ConfigError for a label file, or an environment, that cannot be used."""
        self._runtimes = runtimes
        self._declared = specifications(document)
        self._requirements = requirements_of(document)
        self._granted, self._grants = granted(document), grants_of(document)
        self._service = _service_of(document, runtimes, environment)
        self._targets: dict[str, Target] = {} if self._service is None else {EMBEDDING_ENDPOINT: self._service}
        self._callers: dict[str, Caller] = {}
        self._changed = asyncio.Event()

    # -- what signals ask

    def open(self, deadline: Deadline) -> RuntimeStage:
        return RuntimeStage(self._targets, self._runtimes.metrics, deadline, self._runtimes.tempo.join_wait)

    def card(self, deployment: str) -> Card | None:
        return self._callers[deployment].card if deployment in self._callers else None

    def grants(self, listener: str) -> Grants:
        return self._grants.get(listener) or Grants()

    async def pass_on(self, deployment: str, path: str, body: Callable[[str], bytes], seconds: float, most: int) -> Exchange:
        caller = self._callers.get(deployment)
        if caller is None:
            raise CallFailed(outcome.UNAVAILABLE)
        return await caller.pass_on(path, body, seconds, most)

    @property
    def callers(self) -> Mapping[str, Caller]:
        """Those of the deployments that were started, by name."""
        return self._callers

    @property
    def pools(self) -> list[Pool]:
        return [caller.pool for caller in self._callers.values()]

    # -- life

    def start(self, used: Collection[str]) -> None:
        """Borrow the workers of the deployments that something uses, or a listener grants to its clients. Raises ConfigError for one that is not
        declared, and for a worker that cannot be set up."""
        self._runtimes.watch(self._on_change)
        for name in sorted((set(used) | self._granted) - {EMBEDDING_ENDPOINT}):
            specification = self._declared.get(name)
            if specification is None:
                raise ConfigError(
                    f'deployment "{name}" is used, and is no deployment of provider model_runtime', reason="unknown_deployment",
                    fix="Declare it in global.model_catalog.deployments.",
                )  # fmt: skip
            self._begin(specification)
        self._targets.update(self._callers)
        self._on_change()

    def _begin(self, specification: Specification) -> None:
        name, metrics = specification.name, self._runtimes.metrics
        pool = self._runtimes.open_pool(specification, [each for each in self._requirements if each.deployment == name])
        self._callers[name] = Caller(pool, ResultCache(self._runtimes.environment.result_cache), metrics)

    async def wait(self, report: Report = _no_report, timeout: float | None = None) -> None:
        """Until all workers that the router runs are ready and their models fit. Of attached ones only the first look is waited for: one that is
        away does not hold anything up, one whose model does not fit its binding does. Raises ModelNotReadyError when one never will be, or after `timeout` seconds (VLLM_SRUN_READY_TIMEOUT unless given)."""
        bound = self._runtimes.environment.ready_timeout if timeout is None else timeout
        pending: list[Pool] = []
        try:
            async with asyncio.timeout(bound):
                while pending := self._pending():
                    report(waiting_message(self.pools), states(self.pools))
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            first = pending[0]
            raise ModelNotReadyError(
                f"model deployment {first.name} did not become ready within {go_duration.written(bound)}: it is {_in_words(first)}",
                fix="Start again to go on with a download, or raise VLLM_SRUN_READY_TIMEOUT.",
            ) from None
        report("All model deployments are ready", states(self.pools))

    def _pending(self) -> list[Pool]:
        """Deployments with a worker to wait for. Raises ModelNotReadyError for one that is not worth it."""
        pending = []
        for pool in self.pools:
            found = [(worker, pool.state_of(worker)) for worker in pool.workers]
            for worker, state in found:
                if worker.failure is not None:
                    raise ModelNotReadyError(f"model deployment {pool.name}: {worker.failure}")
                if state.state == "incompatible" and (worker.managed or state.reason.startswith(MISMATCH)):
                    raise ModelNotReadyError(f"model deployment {pool.name}: {state.reason}", reason="binding_mismatch")
            if any(not state.ready if worker.managed else state == _NOT_LOOKED_AT for worker, state in found):
                pending.append(pool)
        return pending

    async def close(self) -> None:
        """Workers that no other generation has end."""
        self._runtimes.unwatch(self._on_change)
        pools, self._callers, self._targets = self.pools, {}, {}
        await self._runtimes.close_pools(pools)
        if self._service is not None:
            await self._service.close()

    def _on_change(self) -> None:
        for caller in self._callers.values():
            caller.notice()
        self._changed.set()


def _in_words(pool: Pool) -> str:
    return f"{pool.state.state} ({pool.state.reason})" if pool.state.reason else pool.state.state


def _service_of(document: Document, runtimes: Runtimes, environment: Mapping[str, str]) -> EmbeddingService | None:
    endpoint = _endpoint_of(document)
    if endpoint is None:
        return None
    variable = endpoint.api_key_env
    key = environment.get(variable) if variable else None
    if variable and not key:
        raise ConfigError(f"the variable {variable} is not set", param="embeddings.semantic.endpoint.api_key_env", reason="variable_missing")
    return EmbeddingService(endpoint, key, runtimes.metrics)


def _endpoint_of(document: Document) -> EmbeddingEndpoint | None:
    catalog = catalog_of(document)
    semantic = catalog.embeddings.semantic if catalog and catalog.embeddings else None
    return semantic.endpoint if semantic else None
