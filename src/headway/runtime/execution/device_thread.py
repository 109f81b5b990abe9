"""DeviceThread: the one thread of a process on which models compute, whichever model it is.

One thread, since two teams of OpenMP threads on the same cores make both several times slower.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from headway.runtime.execution.scheduler import Scheduler

_log = logging.getLogger(__name__)
T = TypeVar("T")


class DeviceThread:
    """`changed` guards the queues of all schedulers that run here; it is notified when one of them has something new."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self._schedulers: list[Scheduler] = []
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="device", daemon=True)
        self._thread.start()

    def attach(self, scheduler: Scheduler) -> None:
        with self.changed:
            self._schedulers.append(scheduler)

    def detach(self, scheduler: Scheduler) -> None:
        with self.changed:
            self._schedulers.remove(scheduler)

    def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the device thread between two forward passes and wait for it. Raises what it raises.

        On the device thread itself it runs at once.
        """
        if threading.current_thread() is self._thread:
            return work()
        done: Future[Any] = Future()
        with self.changed:
            if self._is_closing:
                raise RuntimeError("the device thread has ended")
            self._calls.append((work, done))
            self.changed.notify_all()
        return cast(T, done.result())

    def close(self, seconds: float = 10.0) -> bool:
        """Answer what waits with an error, end the thread; False when a pass still runs after `seconds`."""
        with self.changed:
            self._is_closing = True
            schedulers = list(self._schedulers)
            while self._calls:
                self._calls.popleft()[1].set_exception(RuntimeError("the device thread has ended"))
            self.changed.notify_all()
        for scheduler in schedulers:
            scheduler.close()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while True:
            with self.changed:
                while not (self._is_closing or self._calls):
                    scheduler, begin = self._next()
                    now = time.perf_counter()
                    if scheduler is not None and begin <= now:
                        break
                    self.changed.wait(None if scheduler is None else begin - now)
                if self._is_closing:
                    return
                call = self._calls.popleft() if self._calls else None
            if call is not None:
                _run(*call)
            elif scheduler is not None:
                scheduler.run_pass(others_wait=self._others_wait(scheduler))

    def _next(self) -> tuple[Scheduler | None, float]:
        """Whose pass is next, and the time before which it should not begin: of those that may begin now the one whose
        job is expected to be finished first, else the one that may begin first."""
        now = time.perf_counter()
        best: tuple[float, float] | None = None
        chosen = None
        for scheduler in self._schedulers:
            finish = scheduler.queue.next_finish()
            if finish is None or scheduler.is_running:
                continue
            rank = (max(now, scheduler.queue.wait_until()), finish)
            if best is None or rank < best:
                best, chosen = rank, scheduler
        return chosen, best[0] if best is not None else 0.0

    def _others_wait(self, scheduler: Scheduler) -> bool:
        return any(len(other.queue) > 0 for other in self._schedulers if other is not scheduler)


def _run(work: Callable[[], Any], done: Future[Any]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:
        done.set_exception(error)
