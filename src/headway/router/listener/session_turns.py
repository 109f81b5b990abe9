"""Turns of sessions: which model answered each session last, and what a turn used."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from headway.router.listener.session import names_session
from headway.router.listener.usage import Usage
from headway.router.metrics.registry import RouterMetrics
from headway.router.request.context import RequestContext
from headway.router.truth import Truth

MOST_SESSIONS: Final = 10_000
_NO_DOMAIN = "unknown"


class LastModels:
    """The model that answered each session last; of more than MOST_SESSIONS those that were silent longest are forgotten. One event loop."""

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._models: OrderedDict[str, str] = OrderedDict()

    def note(self, session: str, model: str) -> str | None:
        """The model before this one, None for a session that is new here."""
        before = self._models.pop(session, None)
        self._models[session] = model
        if len(self._models) > self._most:
            self._models.popitem(last=False)
        return before


def count_turn(metrics: RouterMetrics, last: LastModels, context: RequestContext, model: str, usage: Usage) -> None:
    """A turn is a request that a model answered. A session that the client does not name is a fingerprint of its beginning, which strangers may
    share: only a request that brings an earlier answer counts as its next turn."""
    if context.session is None:
        return
    domain = _domain(context)
    if not usage.estimated:
        metrics.observe("llm_session_turn_prompt_tokens", usage.prompt_tokens, model, domain)
        metrics.observe("llm_session_turn_completion_tokens", usage.completion_tokens, model, domain)
    before = last.note(context.session, model)
    if before not in (None, model) and (names_session(context.headers) or _goes_on(context)):
        metrics.count("llm_session_model_transitions", str(before), model)


def count_turn_cost(metrics: RouterMetrics, context: RequestContext, model: str, amount: float, currency: str) -> None:
    if context.session is not None:
        metrics.observe("llm_session_turn_cost", amount, model, _domain(context), currency)


def _goes_on(context: RequestContext) -> bool:
    return any(message.get("role") == "assistant" for message in context.view.messages)


def _domain(context: RequestContext) -> str:
    """The likeliest domain that a rule found: a name of the configuration."""
    found = [each for each in context.observations if each.kind == "domain" and each.truth is Truth.TRUE]
    return max(found, key=lambda each: each.confidence or 0.0).name if found else _NO_DOMAIN
