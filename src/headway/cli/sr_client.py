"""Calls to a router: its management address, and its public one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
import httpx

from headway import __version__
from headway.cli.sr_place import CONFIG, port_offset, state_folder
from headway.cli.sr_run_file import running_routers
from headway.errors import HeadwayError

_Command = TypeVar("_Command", bound=Callable[..., Any])
MANAGEMENT_PORT, PUBLIC_PORT = 8080, 8899
_ROOT = "/api/v1"
_CONNECT_SECONDS = 5.0
_VERSION_HEADER = "x-headway-version"


def management_options(timeout: float = 15.0) -> Callable[[_Command], _Command]:
    """`--endpoint`, `--timeout` and `--token-env`."""

    def add(command: _Command) -> _Command:
        options = (
            click.option("--endpoint", help="Management address of the router. [default: that of the one router that runs in this folder, else http://127.0.0.1:8080]"),
            click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=timeout, show_default=True, help="Seconds to wait for an answer."),
            click.option("--token-env", default="VSR_MGMT_TOKEN", show_default=True, help="Variable that holds the management token."),
        )
        for option in reversed(options):
            command = option(command)
        return command

    return add


def usual_endpoint() -> str:
    """The management address of the router whose state lies in this folder, if exactly one runs; else the usual port."""
    found = running_routers(state_folder(Path(CONFIG)))
    if len(found) == 1 and (url := found[0].urls.get("management")):
        return url
    return f"http://127.0.0.1:{MANAGEMENT_PORT + port_offset()}"


class ManagementClient:
    """Raises HeadwayError for an address that is none, a router that does not answer, and refusals. A router of another version than this command
    is told of once, on standard error; `router_version` is None until it has answered, and for one that does not say."""

    def __init__(self, endpoint: str | None, timeout: float, token_env: str) -> None:
        token = os.environ.get(token_env, "").strip()
        self._root = (endpoint or usual_endpoint()).rstrip("/").removesuffix(_ROOT)
        self._http = client(self._root, timeout, {"Authorization": f"Bearer {token}"} if token else {})
        self.router_version: str | None = None

    def call(
        self, method: str, path: str, body: Any = None, *, etag: str | None = None, query: Mapping[str, str] | None = None, any_status: bool = False
    ) -> httpx.Response:  # fmt: skip
        headers = {"If-Match": etag} if etag else {}
        response = answered(self._http, self._root, method, path, json=body, headers=headers, params=query)
        self._compare_versions(response.headers.get(_VERSION_HEADER))
        if response.is_error and not any_status:
            raise refused(response)
        return response

    def _compare_versions(self, told: str | None) -> None:
        if told is None or self.router_version is not None:
            return
        self.router_version = told
        if told != __version__:
            click.echo(f"warning: {skew(told)}", err=True)


def skew(router_version: str) -> str:
    return f"the router runs version {router_version[:40]}, this command is version {__version__}: what one of them knows may be unknown to the other"


def client(url: str, timeout: float | None, headers: Mapping[str, str]) -> httpx.Client:
    try:
        return httpx.Client(base_url=url, timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS), headers=dict(headers), trust_env=False)
    except (httpx.InvalidURL, ValueError) as error:
        raise HeadwayError(f"{url} is no address: {error}", reason="address_invalid", fix="It looks like http://127.0.0.1:8080.") from error


def answered(http: httpx.Client, url: str, method: str, path: str, **more: Any) -> httpx.Response:
    try:
        return http.request(method, path, **more)
    except httpx.TimeoutException as error:
        raise HeadwayError(f"No answer from {url} in time", reason="no_server", fix="Raise --timeout.") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        fix = "Start a router with `vllm-sr serve`, or name its address (`vllm-sr status` shows it) with --endpoint or --base-url."
        raise HeadwayError(f"No answer from {url} ({type(error).__name__})", reason="no_server", fix=fix) from error


def refused(response: httpx.Response) -> HeadwayError:
    """What the router said, in one sentence."""
    try:
        body = response.json()
    except ValueError:
        body = None
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        code = error.get("reason") or error.get("code")  # the public address has its reason there, and the status as the code
        return HeadwayError(f"{response.status_code} {code}: {error.get('message')}", reason=str(error.get("reason") or "refused"))
    if isinstance(body, dict) and body.get("decision_error"):
        return HeadwayError(f"{response.status_code}: {body['decision_error']}", reason="decision_unresolved")
    return HeadwayError(f"the router answered {response.status_code}: {response.text[:500]}", reason="refused")


def public_url(given: str | None, config: Any) -> str:
    """Where requests go: `given` without `/v1`, else the first listener of the configuration if there is one, else the default port."""
    if given is not None:
        return given.rstrip("/").removesuffix("/v1")
    if config is not None and config.exists():
        from headway.router.config.load import load_document
        from headway.router.process.settings import ServeSettings, addresses

        document = load_document(config, dict(os.environ)).document
        first = addresses(document, ServeSettings(config, config.parent, port_offset=port_offset()))[0]
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(first.host, first.host)
        return f"{'https' if first.listener and first.listener.tls else 'http'}://{host}:{first.port}"
    return f"http://127.0.0.1:{PUBLIC_PORT + port_offset()}"
