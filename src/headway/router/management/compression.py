"""Context compression: what it would do to a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from headway.router.config.document.compression_plugin import ContextCompressionPlugin
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import calls
from headway.router.management.route import Route
from headway.router.plugins.compression.compress import compressed
from headway.router.plugins.compression.planning import budget_of
from headway.router.plugins.compression.scoring import ScoringUnavailableError, VectorScorer, WordScorer

_FAMILY = "llm_context_compression_saved_tokens"


async def capabilities(call: Call) -> Answer:
    body = {
        "modes": ["auto", "always"],
        "targets": ["current_user", "tool_outputs", "history", "rag"],
        "target_modes": ["preserve", "extractive"],
        "scoring": ["bm25", "embedding", "hybrid"],
        "recovery": False,
    }
    return Answer(body)


async def health(call: Call) -> Answer:
    return Answer({"status": "healthy"})


async def stats(call: Call) -> Answer:
    """Estimated tokens that were left out, by decision."""
    document = call.state.generations.current.document
    routings = [document.routing, *(recipe.routing for recipe in document.recipes or ())]
    names = {decision.name for routing in routings if routing for decision in routing.decisions or () if decision.name}
    return Answer({"saved_tokens": {name: call.state.services.metrics.value(_FAMILY, name) for name in sorted(names)}})


async def preview(call: Call) -> Answer:
    """`configuration` of the plugin, `messages`, and the model's `context_window`: plans and numbers, never text."""
    body = call.json()
    messages, window = body.get("messages"), body.get("context_window")
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        raise ManagementError("INVALID_INPUT", "messages must be a list of messages")
    if window is not None and (not isinstance(window, int) or isinstance(window, bool) or window < 1):
        raise ManagementError("INVALID_INPUT", "context_window must be a whole number from 1 on")
    try:
        settings = ContextCompressionPlugin.model_validate({"enabled": True, **(body.get("configuration") or {})})
    except (ValidationError, TypeError) as error:
        raise ManagementError("INVALID_INPUT", f"configuration: {error}"[:2000]) from None
    request: dict[str, Any] = {name: body[name] for name in ("messages", "tools", "max_tokens", "max_completion_tokens") if name in body}
    budget = budget_of(settings, window, request)
    scoring = settings.scoring
    try:
        if scoring.method == "bm25" or scoring.embedding_model_ref is None:
            _, report = await compressed(request, settings, budget, WordScorer())
        else:
            with call.state.generations.use() as generation, calls(generation) as asking:
                _, report = await compressed(request, settings, budget, VectorScorer(asking, scoring.embedding_model_ref, scoring.method))
    except ScoringUnavailableError as error:
        raise ManagementError("SERVICE_UNAVAILABLE", f"the scoring model does not answer: {error}", 503) from None
    return Answer({"budget": {"trigger_tokens": budget.trigger, "target_tokens": budget.target}, **report.described()})


_ROOT = "/api/v1/context-compression"
ROUTES = (
    Route("GET", f"{_ROOT}/capabilities", capabilities, "compression.read", "What compression can do."),
    Route("GET", f"{_ROOT}/health", health, "compression.read", "Compression needs nothing that could be away."),
    Route("GET", f"{_ROOT}/stats", stats, "compression.read", "Tokens that were left out."),
    Route("POST", f"{_ROOT}/preview", preview, "compression.preview", "What compression would do to messages."),
)
