"""How far estimated prompt tokens are from those that the backend counted."""

from __future__ import annotations

from headway.router.listener.usage import Usage
from headway.router.metrics.registry import RouterMetrics
from headway.router.request.context import RequestContext

_EFFECTIVE = "x-vsr-effective-input-tokens"


def judge_estimates(metrics: RouterMetrics, context: RequestContext, usage: Usage, for_budget: int | None) -> None:
    """Of each estimate that this request's routing or budget was based on, signed, in percent of the count. Not when the backend did not count, or got
    another conversation than the client sent (compressed, with documents): the two would not speak of the same tokens."""
    body, sent = context.body, context.original
    if usage.estimated or usage.prompt_tokens <= 0 or any(body.get(name) is not sent.get(name) for name in ("messages", "tools")):
        return
    estimates = {"signal": _of_the_signal(context), "requirements": _number(context.response_headers.get(_EFFECTIVE)), "budget": for_budget}
    for category, estimate in estimates.items():
        if estimate is not None:
            metrics.observe("vsr_token_estimation_error_pct", 100 * (estimate - usage.prompt_tokens) / usage.prompt_tokens, category)


def _of_the_signal(context: RequestContext) -> float | None:
    return next((each.value for each in context.observations if each.kind == "context"), None)


def _number(told: str | None) -> int | None:
    return int(told) if told is not None else None
