"""Tokens and roles of the management address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.router_process import RunningRouter, command, started_router, two_models

AUTH = {
    "mode": "bearer",
    "tokens": [{"env": "ADMIN_TOKEN", "role": "admin"}, {"env": "VIEW_TOKEN", "role": "viewer"}, {"env": "OPS_TOKEN", "role": "ops"}],
    "roles": {"ops": ["config.read", "secret_view"]},
}


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    document = two_models("127.0.0.1:9", "127.0.0.1:9", **{"global": {"services": {"management_api": {"auth": AUTH}}}})
    document["providers"]["models"][0]["backend_refs"][0]["api_key"] = "secret-of-small"
    tokens = {"ADMIN_TOKEN": "admin-1", "VIEW_TOKEN": "view-1", "OPS_TOKEN": "ops-1"}
    with started_router(tmp_path_factory.mktemp("access"), document, **tokens) as found:
        yield found


def status(router: RunningRouter, token: str | None, method: str = "GET", path: str = "/api/v1/config") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return router.client.request(method, router.management + path, headers=headers, json={} if method != "GET" else None).status_code


def test_who_has_no_token_sees_health_only(router: RunningRouter) -> None:
    assert [status(router, None, path=path) for path in ("/health", "/ready", "/startup-status", "/api/v1/config")] == [200, 200, 401, 401]
    assert status(router, "admin-2") == 401
    assert status(router, None, "POST", "/api/v1/routing/preview") == 401
    assert ["x-headway-version" in router.get(path).headers for path in ("/health", "/startup-status")] == [False, False]


def test_roles_may_what_their_permissions_say(router: RunningRouter) -> None:
    assert status(router, "view-1") == 200
    assert status(router, "view-1", "PUT") == 403
    assert status(router, "admin-1", "PUT") == 400  # allowed, and the body is empty
    assert status(router, "ops-1", path="/startup-status") == 403


def test_secrets_are_for_roles_that_may_see_them(router: RunningRouter) -> None:
    def shown(token: str) -> str:
        return router.client.get(f"{router.management}/api/v1/config", headers={"Authorization": f"Bearer {token}"}).text

    assert "secret-of-small" in shown("ops-1")
    assert "secret-of-small" in shown("admin-1")
    assert "secret-of-small" not in shown("view-1")


def test_the_command_line_takes_the_token_from_its_variable(router: RunningRouter) -> None:
    refused = command(router, "route", "preview", "--prompt", "python")
    assert refused.returncode == 1
    assert "401" in refused.stderr
    told = command(router, "route", "preview", "--prompt", "python", VSR_MGMT_TOKEN="view-1")
    assert told.returncode == 0, told.stderr
    assert "large" in told.stdout
    assert "401" in command(router, "status").stdout
    status = command(router, "status", VSR_MGMT_TOKEN="view-1").stdout
    assert "401" not in status
    assert "generation 1" in status


def test_a_token_that_is_not_set_stops_the_start(tmp_path: Path) -> None:
    document = two_models("127.0.0.1:9", "127.0.0.1:9", **{"global": {"services": {"management_api": {"auth": AUTH}}}})
    with started_router(tmp_path, document, wait=False, ADMIN_TOKEN="a") as router:
        assert router.process.wait(30) == 2
        assert "VIEW_TOKEN" in router.log.read_text()
