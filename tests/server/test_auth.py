"""Keys: which paths need one, and that nothing but the right one passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.server.routes import NOT_BUILT_ROUTES, OPEN_PATHS, ROUTES
from tests.server.api import Api, error

Make = Callable[..., Api]
GUARDED = [(m, r.path) for r in ROUTES for m in r.methods if r.path not in OPEN_PATHS]
GUARDED += [("POST", path) for path in NOT_BUILT_ROUTES] + [("GET", p) for p in ("/openapi.json", "/docs", "/nope", "/v1/models/", "//health")]


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_every_other_path_needs_a_key(make_api: Make, method: str, path: str) -> None:
    api = make_api(api_key=("right",))
    response = api.call(method, path)
    if path.startswith("/v1/messages"):  # Anthropic's form, see tests/server/messages
        assert (response.status_code, response.json()["error"]["reason"]) == (401, "unauthorized")
    else:
        error(response, 401, "unauthorized")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
def test_open_paths(make_api: Make, path: str) -> None:
    assert make_api(api_key=("right",)).get(path).status_code == 200


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        ("Bearer right", True),
        ("bearer right", True),
        ("Bearer  second ", True),
        ("Bearer wrong", False),
        ("Bearer ", False),
        ("Bearer", False),
        ("right", False),
        ("Basic right", False),
        ("Bearer righ", False),
        ("Bearer rightt", False),
    ],
)
def test_keys(make_api: Make, header: str, passes: bool) -> None:
    api = make_api(api_key=("right", "second"))
    response = api.get("/v1/models", headers={"Authorization": header})
    assert response.status_code == (200 if passes else 401)


def test_bytes_that_are_no_text_do_not_pass(make_api: Make) -> None:
    api = make_api(api_key=("right",))
    error(api.get("/v1/models", headers=[(b"authorization", b"Bearer \xff\xfe")]), 401)


def test_keys_beyond_ascii(make_api: Make) -> None:
    api = make_api(api_key=("clé",))
    assert api.get("/v1/models", headers=[(b"authorization", "Bearer clé".encode())]).status_code == 200


def test_without_keys_all_is_open(api: Api) -> None:
    assert api.get("/v1/models").status_code == 200


def test_a_proxy_prefix_opens_nothing_else(make_api: Make) -> None:
    api = make_api(api_key=("right",), root_path="/pre")
    assert api.get("/pre/health").status_code == api.get("/health").status_code == 200
    error(api.get("/prehealth"), 401)
    error(api.get("/pre/v1/models"), 401)
    assert api.get("/pre/v1/models", headers={"Authorization": "Bearer right"}).status_code == 200
