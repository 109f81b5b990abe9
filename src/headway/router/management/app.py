"""ManagementApp: the ASGI application of the management address. Plain ASGI on one table of routes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from headway import __version__
from headway.errors import HeadwayError, NotFoundError, RequestError
from headway.http.body import read_bytes
from headway.http.client_watch import ClientLeft
from headway.router.management.answer import Answer, defect, refusal, send_answer
from headway.router.management.call import Call
from headway.router.management.origin import refuse_foreign_pages
from headway.router.management.route import find
from headway.router.management.routes import ROUTES
from headway.router.management.state import ManagementState
from headway.telemetry.defect import describe_defect
from headway.wire.limits import BodyLimits

_log = logging.getLogger(__name__)
BODY_LIMITS = BodyLimits(max_bytes=10 * 2**20, max_depth=64)
_BODY_SECONDS = 60.0
VERSION_HEADER = "x-headway-version"
"""So that a command that is older or newer than the router can say so."""
_PROBES = ("/health", "/ready")
_LONGEST_SHOWN = 200


class ManagementApp:
    def __init__(self, state: ManagementState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            answer = await self._answer(scope, receive)
        except ClientLeft:
            return
        except HeadwayError as error:
            answer = refusal(error)
        except Exception as error:  # its own words may hold parts of the request or of the configuration
            _log.error("a management request failed: %s", describe_defect(error))
            answer = defect()
        if not self._is_for_strangers(scope["path"], answer.status):
            answer.headers[VERSION_HEADER] = __version__
        await send_answer(send, answer, without_body=scope["method"] == "HEAD")

    def _is_for_strangers(self, path: str, status: int) -> bool:
        """Who has no token where one is needed does not hear which version runs."""
        return self._state.access.enabled and (status in (401, 403) or path in _PROBES)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        method, path = scope["method"], scope["path"]
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        found = find(ROUTES, method, path)
        if found.route is None:
            return _misrouted(method, path, found.allowed)
        refuse_foreign_pages(headers, any_host=self._state.access.enabled)
        role = self._state.access.check(headers.get("authorization", ""), found.route.permission)
        raw = await read_bytes(receive, headers.get("content-length", ""), BODY_LIMITS, _BODY_SECONDS)
        client = scope.get("client")
        call = Call(self._state, found.parameters, _query(scope), headers, raw, client[0] if client else "", role, ROUTES)
        return await found.route.handler(call)


def _query(scope: Scope) -> Mapping[str, str]:
    return dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True, max_num_fields=100))


def _misrouted(method: str, path: str, allowed: tuple[str, ...]) -> Answer:
    shown = f"{method[:20]} {path[:_LONGEST_SHOWN]}"
    if allowed:
        answer = refusal(RequestError(f"there is no {shown}", reason="method_not_allowed", fix=f"Use {', '.join(allowed)}."))
        answer.headers["allow"] = ", ".join(allowed)
        return answer
    return refusal(NotFoundError(f"there is no route {shown}", reason="route_not_found", fix="GET /api/v1 lists the routes."))
