"""The plugin context_compression."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headway.errors import ConfigError, HeadwayError
from headway.router.config.document.compression_plugin import ContextCompressionPlugin
from headway.router.config.document.decisions import Decision
from headway.router.generation.services import Services
from headway.router.plugins.compression.compress import Report, compressed
from headway.router.plugins.compression.planning import budget_of
from headway.router.plugins.compression.scoring import ScoringUnavailableError, VectorScorer, WordScorer
from headway.router.plugins.models import asking
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe

_TARGET = re.compile(r"target\s*=\s*(\d{1,9})")


class CompressionFailedError(HeadwayError):
    """The request could not be brought down to its budget, and the route does not send it as it is."""

    reason = "context_compression_failed"


class ContextCompression(Plugin):
    """Signals and decisions saw the whole request; only the backend gets the shorter one. `fail_open` sends what could not be brought down to the
    budget, or the request as it came when the scoring model does not answer."""

    type = "context_compression"

    def __init__(self, configuration: ContextCompressionPlugin, windows: Mapping[str, int]) -> None:
        self._configuration = configuration
        self._windows = windows
        self.fails_closed = configuration.failure_mode == "fail_closed"

    def deployments(self) -> frozenset[str]:
        scoring = self._configuration.scoring
        return frozenset({scoring.embedding_model_ref}) if scoring.method != "bm25" and scoring.embedding_model_ref else frozenset()

    async def before(self, context: RequestContext) -> Reply | None:
        """Raises CompressionFailedError with fail_closed."""
        bypass, tool_target = self._controls(context)
        if bypass or not isinstance(context.body.get("messages"), list):
            return None
        report = await self._compress(context, tool_target)
        if self.fails_closed and (report is None or not report.fits):
            raise CompressionFailedError("the request is longer than the model's budget and could not be shortened enough", fix="Send less text.")
        metrics = context.generation.services.metrics
        metrics.count("llm_context_compression_requests", context.decision_name or "", "scoring_unavailable" if report is None else report.reason)
        if report is not None and report.before > report.after:
            metrics.count("llm_context_compression_saved_tokens", context.decision_name or "", by=report.before - report.after)
            context.notes[self] = report
        return None

    async def _compress(self, context: RequestContext, tool_target: int | None) -> Report | None:
        settings, scoring = self._configuration, self._configuration.scoring
        model = (context.selection.model if context.selection else None) or ""
        budget = budget_of(settings, self._windows.get(model), context.body)
        try:
            if scoring.method == "bm25" or scoring.embedding_model_ref is None:
                context.body, report = await compressed(context.body, settings, budget, WordScorer(), tool_target)
            else:
                with asking(context) as calls:
                    scorer = VectorScorer(calls, scoring.embedding_model_ref, scoring.method)
                    context.body, report = await compressed(context.body, settings, budget, scorer, tool_target)
        except ScoringUnavailableError:
            return None
        return report

    def _controls(self, context: RequestContext) -> tuple[bool, int | None]:
        """Whether a client skips compression, and its own limit for the results of tools."""
        controls = self._configuration.request_controls
        said = context.headers.get(controls.header.lower(), "")[:256].lower() if controls.enabled else ""
        words = [word.strip() for word in said.split(",")]
        targets = [int(found[1]) for word in words if (found := _TARGET.fullmatch(word))] if "target" in controls.allowed else []
        return "bypass" in words and "bypass" in controls.allowed, min(targets[0], controls.max_target_tokens) if targets else None


def compile_context_compression(
    configuration: ContextCompressionPlugin, decision: Decision, recipe: Recipe, services: Services
) -> ContextCompression | None:
    """Raises ConfigError for a scoring model that is no deployment."""
    if not configuration.enabled:
        return None
    named = configuration.scoring.embedding_model_ref
    if configuration.scoring.method != "bm25" and named not in (recipe.catalog.deployments or {}):
        raise ConfigError(f'"{named}" is no deployment', param="scoring.embedding_model_ref", fix="Name one of global.model_catalog.deployments.")
    routing = recipe.document.routing
    cards = (routing.modelCards if routing else None) or ()
    return ContextCompression(configuration, {card.name: card.context_window_size for card in cards if card.name and card.context_window_size})
