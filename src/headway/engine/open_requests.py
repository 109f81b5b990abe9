"""OpenRequests: the requests of an AsyncEngine that were taken and have not ended, and where their outputs go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable

from headway.engine.config import EngineConfig
from headway.engine.listener import Listener, post
from headway.engine.outputs import RequestOutput
from headway.engine.queue_limits import require_room
from headway.engine.sequence import Request
from headway.errors import HeadwayError, RequestError


class OpenRequests:
    """By id. Requests enlist on event loops, outputs come from the engine's thread."""

    def __init__(self) -> None:
        self._by_id: dict[str, Listener] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def ids(self) -> list[str]:
        with self._lock:
            return list(self._by_id)

    def enlist(self, request: Request, config: EngineConfig, still_there: Callable[[], object], tell: Callable[[Request], None]) -> Listener:
        """`tell` the engine of it, unless `still_there` raises. Raises RequestError for an id in use, QueueFullError."""
        with self._lock:  # so that `dismiss` finds a request, or the request finds that the engine is gone
            still_there()
            if request.id in self._by_id:
                raise RequestError(f"request id {request.id!r} is in use", param="request_id")
            if not request.continues:
                require_room(config, (each.request for each in self._by_id.values()))
            listener = self._by_id[request.id] = Listener(asyncio.get_running_loop(), request)
            tell(request)
        return listener

    def has(self, listener: Listener) -> bool:
        return self._by_id.get(listener.request.id) is listener

    def strike(self, listener: Listener) -> None:
        with self._lock:
            if self.has(listener):
                del self._by_id[listener.request.id]

    def end(self, request_id: str, last: RequestOutput | None) -> None:
        """The core has let go of it; `last` is for its reader, if there is one."""
        with self._lock:
            listener = self._by_id.pop(request_id, None)
        if listener is not None and last is not None:
            post(listener.loop, [(listener, last)])

    def deliver(self, outputs: Iterable[RequestOutput]) -> None:
        """Hand outputs to their loops, one wake-up for each loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Listener, RequestOutput | HeadwayError]]] = {}
        with self._lock:
            for output in outputs:
                listener = self._by_id.get(output.request_id)
                if listener is not None:
                    by_loop.setdefault(listener.loop, []).append((listener, output))
        for loop, items in by_loop.items():
            post(loop, items)

    def dismiss(self, error: HeadwayError) -> None:
        """All of them end with `error`. Nobody may be `still_there` any more."""
        with self._lock:
            listeners = list(self._by_id.values())
            self._by_id.clear()
        for listener in listeners:
            post(listener.loop, [(listener, error)])
