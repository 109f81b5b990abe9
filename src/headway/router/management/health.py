"""Liveness, readiness and how far the start is."""

from __future__ import annotations

from dataclasses import replace

from headway.router.deployments.progress import states
from headway.router.management.answer import Answer
from headway.router.management.call import Call
from headway.router.management.route import Route
from headway.router.process.startup import StartupStatus


async def health(call: Call) -> Answer:
    return Answer({"status": "healthy", "service": "classification-api"})


def _status(call: Call) -> StartupStatus:
    """Once it serves, deployments are as they are now, not as they were when the start ended."""
    status = call.state.startup.status
    if not status.ready or not call.state.generations.is_ready:
        return status
    with call.state.generations.use() as generation:
        return replace(status, deployments=states(generation.deployments.pools))


async def ready(call: Call) -> Answer:
    status = _status(call)
    told = status.document()
    kept = ("ready", "phase", "message", "downloading_model", "pending_models", "ready_models", "total_models")
    body = {"status": "ready" if status.ready else "starting", "service": "classification-api", **{name: told[name] for name in kept}}
    return Answer(body, 200 if status.ready else 503)


async def startup_status(call: Call) -> Answer:
    status = _status(call)
    return Answer(status.document(), 200 if status.ready else 503)


ROUTES = (
    Route("GET", "/health", health, None, "Whether the process answers."),
    Route("GET", "/ready", ready, None, "Whether requests are routed."),
    Route("GET", "/startup-status", startup_status, "ready.read", "What the start waits for."),
)
