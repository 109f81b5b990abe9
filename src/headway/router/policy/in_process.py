"""Previews of requests without a running router: the configuration is compiled here, and nobody answers for its models."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.errors import HeadwayError
from headway.router.config.document.document import Document
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.deployments.stage import RuntimeStage
from headway.router.generation.assembly import Places, assemble
from headway.router.generation.generation import Generation
from headway.router.generation.names import AUTO_NAMES
from headway.router.generation.services import Services
from headway.router.management.preview_report import preview_report
from headway.router.policy.document import Case
from headway.router.policy.judgement import Verdict, judge
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.routing import route

_SECONDS = 30.0  # for one case


class UnansweredDeployments(RuntimeDeployments):
    """Nothing is started and nothing is asked: every question stays unanswered, as with runtimes that are down."""

    def open(self, deadline: Deadline) -> RuntimeStage:
        return RuntimeStage({}, self._runtimes.metrics, deadline, self._runtimes.tempo.join_wait)


def run_cases(document: Document, cases: Sequence[Case], environment: Mapping[str, str]) -> list[Verdict]:
    """Raises ConfigError for a configuration that cannot be compiled; a request that cannot be routed is a verdict."""
    with tempfile.TemporaryDirectory(prefix="vllm-sr-test-") as state:
        return asyncio.run(_run(document, cases, environment, Path(state)))


async def _run(document: Document, cases: Sequence[Case], environment: Mapping[str, str], state: Path) -> list[Verdict]:
    services = Services(state)
    try:
        deployments = UnansweredDeployments(document, services.runtimes, environment)
        generation = assemble(document, deployments, services, Places(number=1, version=0, environment=environment))
        return [judge(case, number, await _previewed(case, generation)) for number, case in enumerate(cases, 1)]
    finally:
        await services.close()


async def _previewed(case: Case, generation: Generation) -> Mapping[str, Any]:
    body = case.body(AUTO_NAMES[0])
    context = RequestContext(
        generation=generation,
        body=body,
        headers={},
        identity=Identity(user=case.user, groups=tuple(case.groups or ())),
        deadline=Deadline.after(_SECONDS, visible=True),
        request_id="policy-test",
        dry_run=True,
        sampling_seed=case.sampling_seed,
    )
    error = ""
    try:
        await route(context)
    except HeadwayError as failure:
        error = failure.reason
    return {**preview_report(context, "", False), "error": error}
