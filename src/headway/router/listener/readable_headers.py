"""Request headers that a configuration lets plugins and backends read, beside those that anybody may say."""

from __future__ import annotations

from collections.abc import Iterator

from headway.errors import ConfigError
from headway.router.catalog.providers import PROVIDERS
from headway.router.config.document.document import Document

PROTECTED = frozenset({
    "authorization", "api-key", "x-api-key", "cookie", "host", "forwarded", "x-vsr-debug", "x-vsr-skip-processing", "x-authz-user-id",
    "x-authz-user-groups", "x-authz-team-id", "x-authz-tenant-id",
})  # fmt: skip
"""Secrets, and what only trusted peers may say: no configuration opens these."""


def readable_headers(document: Document) -> frozenset[str]:
    """Lower-case names: those of `request_controls`, of sessions, and of callers' own keys for providers. Raises ConfigError for a protected one."""
    found = {provider.user_key_header.lower() for provider in PROVIDERS.values() if provider.user_key_header is not None}
    for name in (*_control_headers(document), *_session_headers(document)):
        if name.lower() in PROTECTED or name.lower().startswith(("x-forwarded-", "x-authz-")):
            raise ConfigError(f'"{name}" cannot be a header of request_controls or sessions: it is kept from them', reason="header_protected", fix="Choose another name.")
        found.add(name.lower())
    return frozenset(found)


def _session_headers(document: Document) -> Iterator[str]:
    router = document.global_.router if document.global_ else None
    protection = router.learning.protection if router and router.learning else None
    if protection is not None and protection.enabled:
        yield protection.header


def _control_headers(document: Document) -> Iterator[str]:
    for routing in (document.routing, *(recipe.routing for recipe in document.recipes or ())):
        for decision in (routing.decisions if routing else None) or ():
            for plugin in decision.plugins or ():
                controls = plugin.configuration.get("request_controls")
                for name in (plugin.configuration.get("control_header"), controls.get("header") if isinstance(controls, dict) else None):
                    if isinstance(name, str):
                        yield name
