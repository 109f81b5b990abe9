"""PublicApp: the application behind one public listener. Plain ASGI; no request gets a task of its own beside the server's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from starlette.types import Receive, Scope, Send

from headway.errors import NotFoundError
from headway.http.client_watch import ClientLeft
from headway.http.left import leavers
from headway.http.shutdown import Ending, shutting_down
from headway.router.generation.generation import Generation
from headway.router.generation.generations import Generations
from headway.router.listener.errors import MethodNotAllowedError
from headway.router.listener.exchange import Exchange
from headway.router.listener.head import caller_of
from headway.router.listener.models import send_models
from headway.router.listener.refused_skips import RefusedSkips
from headway.router.listener.request import PublicRequest
from headway.router.listener.respond import error_headers, note_defect, send_json, send_object
from headway.router.native.endpoint import handle_native, send_native_models
from headway.router.protocols.anthropic.counting import PATH as COUNTING
from headway.router.protocols.anthropic.counting import handle_counting
from headway.router.protocols.anthropic.endpoint import MessagesEndpoint
from headway.router.protocols.chat_endpoint import ChatEndpoint
from headway.router.protocols.completions_endpoint import CompletionsEndpoint
from headway.router.protocols.endpoint import Endpoint
from headway.router.protocols.errors import rendered_for
from headway.router.protocols.passed_endpoint import EmbeddingsEndpoint
from headway.router.protocols.responses.endpoint import ResponsesEndpoint
from headway.router.protocols.responses.retrieval import PREFIX as STORED
from headway.router.protocols.responses.retrieval import handle_stored
from headway.wire.errors import reason_of

_log = logging.getLogger(__name__)
Handler = Callable[[PublicRequest], Awaitable[None]]

INFERENCE: Mapping[str, Endpoint] = {
    "/v1/chat/completions": ChatEndpoint(),
    "/v1/completions": CompletionsEndpoint(),
    "/v1/embeddings": EmbeddingsEndpoint(),
    "/v1/messages": MessagesEndpoint(),
    "/v1/responses": ResponsesEndpoint(),
}
_QUERIES: Mapping[str, Handler] = {"/v1/models": send_models, "/v1/systemone/models": send_native_models}
_NATIVE: Mapping[str, Handler] = {"/v1/systemone": handle_native, "/v1/decisions": handle_native}

_PROTOCOLS: Mapping[str, str] = {COUNTING: "anthropic", **{path: path.removeprefix("/v1/") for path in _NATIVE}}
"""How errors are written on routes besides INFERENCE."""


class PublicApp:
    """`listener` is the name of the listener whose rules hold; `ending` counts its requests and ends them."""

    def __init__(self, generations: Generations, listener: str, ending: Ending) -> None:
        self._generations, self._listener, self._ending = generations, listener, ending
        self._running: set[asyncio.Task[object]] = set()
        self._watches_end = False
        self._refused_skips = RefusedSkips()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path in ("/health", "/ready"):
            await self._probe(path, send)
            return
        task = asyncio.current_task()
        assert task is not None
        left, gone = leavers(scope), False

        def leave() -> None:
            nonlocal gone
            gone = True
            task.cancel()

        left.append(leave)
        self._enter(task)
        exchange: Exchange | None = None
        try:
            self._ending.require_open()
            with self._generations.use() as generation:
                request = self._request(scope, receive, send, generation)
                endpoint = INFERENCE.get(path)
                if endpoint is not None and scope["method"] == "POST" and request.front.routes_chat:
                    exchange = Exchange(request, endpoint)
                    await exchange.run()
                else:
                    await self._other(request, path)
        except ClientLeft:
            _note_left(exchange)
        except asyncio.CancelledError:
            if not gone and not self._ending.is_closing:
                raise
            task.uncancel()
            if gone:
                _note_left(exchange)
            else:
                await self._refuse(path, send, exchange, shutting_down())
        except Exception as error:
            await self._refuse(path, send, exchange, error)
        finally:
            left.remove(leave)
            self._running.discard(task)
            self._ending.load -= 1

    def _request(self, scope: Scope, receive: Receive, send: Send, generation: Generation) -> PublicRequest:
        front = generation.front
        rules = front.rules(self._listener)
        client = scope.get("client")
        caller = caller_of(scope["headers"], client[0] if client else "", front, rules)
        if caller.skip_refused:
            self._refused_skips.note(client[0] if client else "a Unix socket")
        return PublicRequest(scope, receive, send, generation, front, rules, caller, time.perf_counter())

    async def _other(self, request: PublicRequest, path: str) -> None:
        handler, method = _QUERIES.get(path), request.method
        if path.startswith(STORED) and request.front.routes_chat:
            await handle_stored(request)
        elif path in _NATIVE and method == "POST":
            await _NATIVE[path](request)
        elif path == COUNTING and method == "POST" and request.front.routes_chat:
            await handle_counting(request)
        elif handler is not None and method in ("GET", "HEAD"):
            await handler(request)
        elif handler is not None or path in _NATIVE or (path in (*INFERENCE, COUNTING) and request.front.routes_chat):
            raise MethodNotAllowedError(path, method, "GET, HEAD" if handler is not None else "POST")
        else:
            raise NotFoundError(f"There is no route {method[:20]} {path[:200]}", reason="route_not_found")

    async def _probe(self, path: str, send: Send) -> None:
        """`/health` says that the process serves HTTP, `/ready` that it answers requests."""
        ready = self._generations.is_ready and not self._ending.is_closing
        if path == "/health":
            await send_object(send, {"status": "ok"})
        else:
            await send_object(send, {"status": "ready" if ready else "starting", "ready": ready}, status=200 if ready else 503)

    def _enter(self, task: asyncio.Task[object]) -> None:
        self._running.add(task)
        self._ending.load += 1
        if not self._watches_end:
            self._watches_end = True
            self._ending.closing.add_done_callback(self._end_all)

    def _end_all(self, _: object) -> None:
        for task in self._running:
            task.cancel()

    async def _refuse(self, path: str, send: Send, exchange: Exchange | None, error: Exception) -> None:
        if exchange is not None:
            await exchange.fail(error)
            return
        note_defect(error, _log)
        if self._generations.is_ready:
            self._generations.current.services.metrics.count("llm_request_errors", "", reason_of(error))
        endpoint = INFERENCE.get(path)
        protocol = endpoint.protocol if endpoint else _PROTOCOLS.get(path, "")
        status, body = rendered_for(protocol, error)
        await send_json(send, status, body, error_headers(error, "error"))


def _note_left(exchange: Exchange | None) -> None:
    if exchange is not None:
        exchange.left()
