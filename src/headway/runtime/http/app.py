"""WorkerApp: the ASGI application of the worker.

Plain ASGI with tables of routes: at a few hundred microseconds per answer a framework would be most of the time.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Mapping
from typing import TypeAlias

from starlette.types import Receive, Scope, Send

from headway.errors import HeadwayError, NotFoundError, RequestError
from headway.http.key_guard import KeyChain, key_needed
from headway.runtime.http.answer import Answer, send_answer
from headway.runtime.http.endpoints import ENDPOINTS
from headway.runtime.http.health import health, live
from headway.runtime.http.metrics import CONTENT_TYPE
from headway.runtime.http.models_document import decision_models, models_document
from headway.runtime.http.openapi import openapi_yaml
from headway.runtime.http.phases import Phases
from headway.runtime.http.posting import BUNDLE, PostRoute, respond, route_of
from headway.runtime.http.refusal import Refusal, worker_refusal
from headway.runtime.http.state import WorkerState
from headway.wire.strict_json import dumps

_log = logging.getLogger(__name__)
_HARMLESS_ID = re.compile(rb"[A-Za-z0-9._:@/+=-]{1,128}")
_LONGEST_SHOWN = 200
OPEN_PATHS = frozenset({"/health", "/health/live", "/metrics"})
"""What needs no key."""
Page: TypeAlias = Callable[[WorkerState], Answer]


def _health(state: WorkerState) -> Answer:
    status, body = health(state.models, state.is_closing)
    return Answer(status, dumps(body))


PAGES: Mapping[str, Page] = {
    "/health": _health,
    "/health/live": lambda state: Answer(200, dumps(live())),
    "/v1/models": lambda state: Answer(200, dumps(models_document(state.models, state.started, state.published_limits))),
    "/v1/systemone/models": lambda state: Answer(200, dumps(decision_models(state.models, state.started))),
    "/metrics": lambda state: Answer(200, state.metrics.text(), CONTENT_TYPE.encode()),
    "/openapi.yaml": lambda state: Answer(200, openapi_yaml(), b"application/yaml"),
}
"""The GET routes."""
POSTS: Mapping[str, PostRoute] = {route.path: route for route in (*map(route_of, ENDPOINTS), BUNDLE)}
"""The POST routes."""


def create_app(state: WorkerState) -> WorkerApp:
    return WorkerApp(state)


class WorkerApp:
    """Every answer carries `x-request-id`, and under the name that TypeSafe's clients read."""

    def __init__(self, state: WorkerState):
        self._state = state
        self._keys = KeyChain(state.settings.api_key) if state.settings.api_key else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        path, method = scope["path"], scope["method"]
        route = POSTS.get(path)
        if self._keys is not None and path not in OPEN_PATHS and not self._keys.opens(_text(headers, b"authorization")):
            answer: Answer | None = self._refused(route, key_needed(), method)
        elif route is not None and method == "POST":
            answer = await respond(self._state, route, headers, receive)
        elif path in PAGES and method in ("GET", "HEAD"):
            answer = PAGES[path](self._state)
        else:
            answer = self._refused(route, _misrouted(path, method), method)
            allowed = [name for name, table in (("POST", POSTS), ("GET", PAGES)) if path in table]
            if allowed:
                answer.headers["allow"] = ", ".join(allowed)
        if answer is None:
            return
        identity = _request_id(headers)
        if method == "HEAD":
            answer.body = b""
        await send_answer(send, answer, {"x-request-id": identity, "x-typesafe-request-id": identity})

    def _refused(self, route: PostRoute | None, error: HeadwayError, method: str) -> Answer:
        """An error before the handler; a POST route still tells its phases."""
        refusal: Refusal = (route.style(None) if route is not None else worker_refusal)(error)
        answer = Answer(refusal.status, dumps(refusal.body), headers=dict(refusal.headers))
        if route is not None and method == "POST":
            answer.headers["server-timing"] = Phases().header(0.0)
            self._state.metrics.on_request(route.name, refusal.status, 0.0)
        return answer


def _misrouted(path: str, method: str) -> HeadwayError:
    shown = f"{method[:20]} {path[:_LONGEST_SHOWN]}"
    if path in POSTS or path in PAGES:
        return RequestError(f"{path} does not take {method[:20]}", reason="method_not_allowed")
    return NotFoundError(f"There is no route {shown}", reason="route_not_found")


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    """The client's own if it is harmless, else a new one."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _HARMLESS_ID.fullmatch(given) else uuid.uuid4().hex


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")
