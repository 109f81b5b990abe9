"""The metrics address: `/metrics` for Prometheus, and `/health`."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.errors import NotFoundError
from headway.router.generation.generations import Generations
from headway.router.management.answer import Answer, refusal, send_answer
from headway.router.metrics.registry import RouterMetrics


def metrics_app(metrics: RouterMetrics, generations: Generations) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/metrics" and scope["method"] in ("GET", "HEAD"):
            metrics.set("vsr_config_retired_generations", generations.retired)
            answer = Answer(metrics.text(), content_type=CONTENT_TYPE_LATEST)
        elif scope["path"] == "/health":
            answer = Answer({"status": "ok"})
        else:
            answer = refusal(NotFoundError("this address has /metrics and /health", reason="route_not_found"))
        await send_answer(send, answer, without_body=scope["method"] == "HEAD")

    return app
