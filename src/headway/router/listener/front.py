"""Front: what a configuration says about its public addresses, compiled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.errors import HeadwayError
from headway.router.config.document.document import Document
from headway.router.config.document.listeners import Listener
from headway.router.config.document.router_settings import RouterSettings
from headway.router.config.document.services import Budgets, RateLimit, RateLimitRule
from headway.router.config.duration import seconds
from headway.router.listener.key_ring import KeyRing, compile_keys
from headway.router.listener.peers import Peers, compile_peers
from headway.router.listener.price_bounds import BoundsByCurrency, compile_price_bounds
from headway.router.listener.prices import Price, compile_prices
from headway.router.listener.rate_limits import compile_rate_limits, rate_limit_settings
from headway.router.listener.readable_headers import readable_headers
from headway.wire.limits import BodyLimits

DEFAULT_BODY_BYTES = 100 * 1024 * 1024
MOST_BODY_BYTES = 500 * 1024 * 1024
DEFAULT_IDLE_SECONDS = 300.0
_LOOPBACK = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True)
class ListenerRules:
    """Who may ask for what on one listener. `trusted` are peers whose identity headers are believed."""

    name: str
    keys: KeyRing = field(default_factory=KeyRing)
    models: frozenset[str] | None = None
    trusted: Peers = field(default_factory=Peers)
    idle_seconds: float = DEFAULT_IDLE_SECONDS


@dataclass(frozen=True, slots=True)
class DebugRules:
    """Who gets a trace: peers in these networks, holders of these named keys. Peers are loopback when the configuration does not say."""

    peers: Peers = field(default_factory=lambda: compile_peers(_LOOPBACK, "global.router.headers.debug.peers"))
    keys: frozenset[str] = frozenset()

    def allow(self, peer: str, key: str | None) -> bool:
        return (key is not None and key in self.keys) or self.peers.hold(peer)


@dataclass(frozen=True, slots=True)
class Front:
    """`counts_tokens` says that answers must tell their usage, streams too: something has a price, a budget or a limit in tokens."""

    listeners: Mapping[str, ListenerRules] = field(default_factory=dict)
    debug: DebugRules = field(default_factory=DebugRules)
    limits: BodyLimits = field(default_factory=lambda: BodyLimits(DEFAULT_BODY_BYTES))
    body_seconds: float | None = None  # for a body to come; None = as long as a listener may be idle
    identity_headers: tuple[str, str] = ("x-authz-user-id", "x-authz-user-groups")
    skip_allowed: bool = False
    prices: Mapping[str, Price] = field(default_factory=dict)
    price_bounds: Mapping[str, BoundsByCurrency] = field(default_factory=dict)  # by recipe
    routes_chat: bool = True
    readable: frozenset[str] = frozenset()
    rate_limits: tuple[RateLimitRule, ...] = ()
    rate_limit_settings: RateLimit = field(default_factory=RateLimit)
    budget_settings: Budgets = field(default_factory=Budgets)
    counts_tokens: bool = False

    def rules(self, listener: str) -> ListenerRules:
        """Those of a listener. One that the current configuration no longer has is closed to everybody until the process restarts."""
        if not self.listeners:
            return ListenerRules(listener)
        found = self.listeners.get(listener)
        if found is None:
            raise HeadwayError(f'the listener "{listener}" is no longer configured', reason="shutting_down", fix="Use another listener.")
        return found


def compile_front(document: Document, environment: Mapping[str, str] = os.environ) -> Front:
    """Raises ConfigError for keys that are missing or repeated, networks that are none, durations that are none."""
    router = (document.global_.router if document.global_ else None) or RouterSettings()
    debug, streamed = router.headers.debug, router.streamed_body
    if streamed is not None and streamed.enabled is False:
        streamed = None
    limits = BodyLimits(min(streamed.max_bytes, MOST_BODY_BYTES) if streamed and streamed.max_bytes else DEFAULT_BODY_BYTES)
    services = document.global_.services if document.global_ else None
    identity = services.authz.identity if services and services.authz else None
    front, prices, rate_limits = Front(), compile_prices(document), compile_rate_limits(document)
    return Front(
        listeners={each.name or "default": _rules(each, environment) for each in document.listeners or [Listener(name="default", port=8899)]},
        debug=DebugRules(compile_peers(debug.peers, "global.router.headers.debug.peers"), frozenset(debug.keys)),
        limits=limits,
        body_seconds=float(streamed.timeout_sec) if streamed and streamed.timeout_sec else None,
        identity_headers=(
            ((identity and identity.user_id_header) or front.identity_headers[0]).lower(),
            ((identity and identity.user_groups_header) or front.identity_headers[1]).lower(),
        ),
        skip_allowed=bool(router.skip_processing and router.skip_processing.enabled),
        prices=prices,
        price_bounds=compile_price_bounds(document, prices),
        routes_chat=router.enabled is not False,
        readable=readable_headers(document),
        rate_limits=rate_limits,
        rate_limit_settings=rate_limit_settings(document),
        budget_settings=(services.budgets if services else None) or Budgets(),
        counts_tokens=bool(prices) or any(rule.tokens_per_unit is not None for rule in rate_limits),
    )


def _rules(listener: Listener, environment: Mapping[str, str]) -> ListenerRules:
    identity = listener.identity
    trusted = (identity.trusted_peers or ()) if identity and identity.trust_headers else ()
    return ListenerRules(
        name=listener.name or "default",
        keys=compile_keys(listener, environment),
        models=None if listener.models is None else frozenset(listener.models),
        trusted=compile_peers(trusted, f"listeners[{listener.name}].identity.trusted_peers"),
        idle_seconds=seconds(listener.timeout) if listener.timeout else DEFAULT_IDLE_SECONDS,
    )
