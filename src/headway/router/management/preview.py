"""The routing preview: what the live router would do with a request, without asking a backend."""

from __future__ import annotations

import asyncio
import uuid

from headway.router.config.document.services import RoutingPreview
from headway.router.generation.generation import Generation
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.preview_report import preview_report
from headway.router.management.preview_request import PreviewRequest, read_preview
from headway.router.management.route import Route
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.routing import UnresolvedDecisionError, route


async def preview(call: Call) -> Answer:
    request = read_preview(call.json(), call.flag("trace"))
    with call.state.generations.use() as generation:
        services = generation.document.global_.services if generation.document.global_ else None
        limits = (services.api.routing_preview if services and services.api else None) or RoutingPreview()
        if call.state.previews >= limits.max_concurrency:
            raise ManagementError("PREVIEW_OVERLOADED", f"{limits.max_concurrency} previews run already", 429, fix="Try again when one has ended.")
        call.state.previews += 1
        try:
            return await _previewed(generation, request, limits.request_timeout_seconds)
        finally:
            call.state.previews -= 1


async def _previewed(generation: Generation, request: PreviewRequest, seconds: int) -> Answer:
    context = RequestContext(
        generation=generation,
        body=request.body,
        headers={},
        identity=Identity(),
        deadline=Deadline.after(seconds, visible=True),
        request_id=uuid.uuid4().hex,
        session=request.session,
        dry_run=True,
        sampling_seed=request.sampling_seed,
    )
    status, unresolved = 200, ""
    try:
        async with asyncio.timeout(seconds):
            await route(context)
    except UnresolvedDecisionError as error:
        status, unresolved = 503, error.message
    except TimeoutError:
        fix = "Raise global.services.api.routing_preview.request_timeout_seconds."
        raise ManagementError("PREVIEW_TIMEOUT", f"the preview did not end within {seconds} s", 504, fix=fix) from None
    report = preview_report(context, request.shown, request.trace)
    if unresolved:
        report["decision_error"] = unresolved
    return Answer(report, status, {"x-vsr-config-hash": generation.config_hash})


ROUTES = (
    Route("POST", "/api/v1/routing/preview", preview, "classify.invoke", "What the router would do with a request.", ("/api/v1/eval",)),
)
