"""What the router has counted about signals and decisions, as JSON, and a page that lists the endpoints."""

from __future__ import annotations

from html import escape
from typing import Any

from headway.router.management.answer import Answer
from headway.router.management.call import Call
from headway.router.management.route import Route

_PREFIXES = ("llm_signal_", "llm_decision_", "llm_model_selection_", "llm_recipe_")
_LEFT_OUT = ("_bucket", "_created")


async def classification_metrics(call: Call) -> Answer:
    """Since the start of the process. Histograms give their count and sum."""
    found: dict[str, list[dict[str, Any]]] = {}
    for family in call.state.services.metrics.registry.collect():
        if family.name.startswith(_PREFIXES):
            found[family.name] = [
                {"name": sample.name, "labels": dict(sample.labels), "value": sample.value}
                for sample in family.samples
                if not sample.name.endswith(_LEFT_OUT)
            ]
    return Answer({"metrics": found})


async def docs(call: Call) -> Answer:
    """For people; programs read /openapi.json."""
    rows = "".join(
        f"<tr><td>{route.method}</td><td><code>{escape(route.path)}</code></td><td>{escape(route.permission or '-')}</td><td>{escape(route.summary)}</td></tr>"
        for route in call.routes
    )
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>vllm-sr management</title>"
        "<style>body{font-family:sans-serif;margin:2em}td{padding:.2em 1em;border-bottom:1px solid #ddd}</style>"
        f"<h1>Management endpoints</h1><table><tr><th>method<th>path<th>permission<th>what it does</tr>{rows}</table>"
        '<p>As a document for programs: <a href="/openapi.json">/openapi.json</a></p></html>'
    )
    return Answer(page.encode(), content_type="text/html; charset=utf-8")


ROUTES = (
    Route("GET", "/api/v1/observability/classification-metrics", classification_metrics, "metrics.read", "Counts about signals and decisions."),
    Route("GET", "/docs", docs, "docs.read", "This list, as a page."),
)
