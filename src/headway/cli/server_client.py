"""Talking to a running server: where it is, one call, one stream. Every failure is a HeadwayError with a way out."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from typing import Any

import httpx

from headway.cli.trust import Trust
from headway.errors import HeadwayError
from headway.server.run_file import RunningServer, running_servers

DEFAULT_URL = "http://127.0.0.1:8000"
_UNIX = "http+unix://"
_CONNECT_SECONDS = 5.0
_TRUST_FIX = "Name the authority of the server's certificate with --cacert or SSL_CERT_FILE, your own with --cert and --key."


def server_url(given: str | None) -> str:
    """`given` without a trailing `/v1`, else the only server that runs here, else the default address.

    Raises HeadwayError when several run.
    """
    if given is not None:
        plain = given.rstrip("/").removesuffix("/v1")
        return plain if "://" in plain else f"http://{plain}"
    running = running_servers()
    if len(running) > 1:
        raise HeadwayError(
            f"{len(running)} servers run here: {listed(running)}",
            reason="ambiguous_server",
            fix="Choose one with --url.",
        )
    return running[0].url if running else DEFAULT_URL


def listed(servers: list[RunningServer]) -> str:
    return ", ".join(f"{server.url} (pid {server.pid})" for server in servers)


class ServerClient:
    """Calls to one server. `timeout` is in seconds between bytes; None waits for ever."""

    def __init__(
        self, url: str, api_key: str | None = None, timeout: float | None = 10.0, trust: Trust | None = None
    ):
        self.url = url
        unix = url.startswith(_UNIX)
        self._http = httpx.Client(
            base_url="http://localhost" if unix else url,
            transport=httpx.HTTPTransport(uds=url.removeprefix(_UNIX)) if unix else None,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS),
            verify=(trust or Trust()).context() if url.startswith("https:") else False,
            trust_env=False,  # a proxy in the environment is not meant for servers of one's own
        )

    def get(self, path: str) -> httpx.Response:
        """Any answer at all. Raises HeadwayError: `no_server` when nothing answers, `certificate_refused` when it cannot
        be trusted or wants a certificate."""
        try:
            return self._http.get(path)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._no_answer(error) from error

    def json(self, path: str) -> dict[str, Any]:
        response = self.get(path)
        return self._checked(response)

    def model(self) -> str:
        """The first model that the server serves."""
        return str(self.json("/v1/models")["data"][0]["id"])

    def events(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer. Raises HeadwayError for a refusal and for an error inside the stream."""
        try:
            with self._http.stream("POST", path, json={**body, "stream": True}) as response:
                if response.status_code != 200:
                    response.read()
                    self._checked(response)
                for line in response.iter_lines():
                    if line.startswith("data:") and (payload := line[5:].strip()) != "[DONE]":
                        chunk = json.loads(payload)
                        if "error" in chunk:
                            raise _refusal(chunk)
                        yield chunk
        except httpx.HTTPError as error:
            raise self._no_answer(error) from error

    def _checked(self, response: httpx.Response) -> dict[str, Any]:
        try:
            value = response.json()
        except ValueError:
            value = {}
        if response.status_code != 200:
            raise _refusal(value if isinstance(value, dict) else {}, f"{self.url} answered {response.status_code}")
        if not isinstance(value, dict):
            raise HeadwayError(
                f"{self.url} gave an answer that is no JSON object", reason="no_server", fix="Is it a Headway server?"
            )
        return value

    def _no_answer(self, error: Exception) -> HeadwayError:
        if (tls := _tls_error(error)) is not None:
            return HeadwayError(f"No trusted connection to {self.url}: {tls}", reason="certificate_refused", fix=_TRUST_FIX)
        return HeadwayError(
            f"No answer from {self.url} ({type(error).__name__})",
            reason="no_server",
            fix="Start a server with `headway serve`, or give its address with --url.",
        )


def _tls_error(error: Exception) -> str | None:
    """What OpenSSL said, if the connection failed because of it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return getattr(cause, "verify_message", None) or cause.reason or str(cause)
        cause = cause.__cause__ or cause.__context__
    return None


def _refusal(body: dict[str, Any], otherwise: str = "The server refused") -> HeadwayError:
    error = body.get("error")
    if isinstance(error, dict):
        return HeadwayError(str(error.get("message", otherwise)), reason=str(error.get("reason") or "refused"))
    return HeadwayError(str(error or otherwise), reason="refused")
