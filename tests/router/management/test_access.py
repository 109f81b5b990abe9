"""Tokens, roles and permissions."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.config.document.document import Document
from headway.router.management.access import PERMISSIONS, Access, ForbiddenError, UnauthorizedError
from headway.router.management.route import find
from headway.router.management.routes import ROUTES


def access(auth: dict[str, Any] | None, **environment: str) -> Access:
    settings = {"global": {"services": {"management_api": {"auth": auth}}}} if auth else {}
    return Access.of(Document.model_validate({"version": "v0.3", **settings}), environment)


TOKENS = {"mode": "bearer", "tokens": [{"env": "A", "role": "admin"}, {"env": "V", "role": "viewer"}]}


def test_without_tokens_everybody_may_everything() -> None:
    assert access(None).check("", "config.write") is None


def test_a_token_has_its_role_and_no_more() -> None:
    found = access(TOKENS, A="one", V="two")
    assert found.check("Bearer one", "config.write") == "admin"
    assert found.check("bearer two", "config.read") == "viewer"
    assert found.check("", None) is None
    for wrong in ("", "Bearer three", "Basic one", "one", "Bearer "):
        with pytest.raises(UnauthorizedError):
            found.check(wrong, "config.read")
    for permission in ("config.write", "secret_view", "data.write", "cache.manage", "replay.detail", "learning.ingest"):
        with pytest.raises(ForbiddenError):
            found.check("Bearer two", permission)


def test_what_cannot_be_right_is_refused() -> None:
    with pytest.raises(ConfigError, match="variable V"):
        access(TOKENS, A="one")
    with pytest.raises(ConfigError, match="nobody"):
        access({"mode": "bearer", "tokens": [{"env": "A", "role": "nobody"}]}, A="one")


def test_every_route_asks_for_a_permission_that_exists() -> None:
    assert {route.permission for route in ROUTES} - {None} <= set(PERMISSIONS)
    assert {route.path for route in ROUTES if route.permission is None} == {"/health", "/ready", "/v1/models"}


def test_no_route_hides_another() -> None:
    for route in ROUTES:
        for path in (route.path, *route.aliases):
            found = find(ROUTES, route.method, path.replace("{", "").replace("}", ""))
            assert found.route is route, (route.method, path, found.route)
