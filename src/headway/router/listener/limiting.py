"""Whether the rate limits let a request in, wherever they are counted."""

from __future__ import annotations

from headway.router.config.document.services import LimitRedis
from headway.router.listener.rate_limits import NOTHING, Admitted, admit, caller_named, describes, headers_of, refusal
from headway.router.listener.request import PublicRequest
from headway.router.protocols.responses.store import StoreUnavailableError


async def let_in(request: PublicRequest, model: str) -> Admitted:
    """Raises LimitedError; StoreUnavailableError while limits are counted in Redis, it does not answer and `fail_open` is off."""
    front, services, identity = request.front, request.generation.services, request.caller.identity
    settings, rules = front.rate_limit_settings, front.rate_limits
    if not rules or settings.store_backend == "memory":
        return admit(rules, services.rate_windows, identity, model)
    found = [rule for rule in rules if describes(rule.match, identity, model)]
    if not found:
        return NOTHING
    shared, caller = services.shared.limits(settings.redis or LimitRedis()), caller_named(identity)
    counted = await shared.count(found, caller)
    if counted is None:
        if settings.fail_open:
            return admit(rules, services.rate_windows, identity, model)
        raise StoreUnavailableError("rate limits cannot be counted: their Redis does not answer", fix="Try again in a moment.")
    pairs = list(zip(found, counted.windows, strict=True))
    if counted.limited is not None:
        rule, window = pairs[counted.limited]
        most = rule.tokens_per_unit if counted.tokens else rule.requests_per_unit
        raise refusal(rule, window, counted.now, most or 0, "tokens" if counted.tokens else "requests")
    charged = [(rule, window) for rule, window in pairs if rule.tokens_per_unit is not None]
    windows = tuple(window for _, window in charged)
    settle = shared.charging([rule for rule, _ in charged], caller, windows) if windows else None
    return Admitted(headers_of(pairs, counted.now), windows, settle)
