"""RankProcesses: the other ranks as rank 0 knows them. Commands go out, signs of life come in; one that fails ends them all."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Final

import msgspec

from headway.distributed.control_channel import ControlChannel
from headway.distributed.process_groups import PeerLostError
from headway.engine.distributed.local_process import LocalProcess
from headway.engine.distributed.messages import Beat, Command, End, Failed, Hello, encoded, report_of
from headway.engine.distributed.rank_group import RankStatus
from headway.errors import RankError

_log = logging.getLogger(__name__)
BEAT_SECONDS: Final = 1.0
_HERE: Final = socket.gethostname()
_END_SECONDS: Final = 30.0  # that another thread may take to end the group
_EXPLAINED_SECONDS: Final = 3.0  # within which whoever broke a connection is known


@dataclass(slots=True)
class Member:
    """Another rank. `process` where it is on this host."""

    hello: Hello
    channel: ControlChannel
    process: LocalProcess | None
    state: str = "loading"
    lost: str = ""  # what it said when it lost another rank


class RankProcesses:
    """See RankGroup. `tell` and `together` are for the thread of the engine; a thread of its own listens."""

    def __init__(self, members: dict[int, Member], timeout_seconds: float):
        self._members = members
        self._timeout = timeout_seconds
        self._failure: RankError | None = None
        self._heard: list[Callable[[], None]] = []
        self._lock = threading.Lock()  # guards _failure, _heard, _closed, _ended
        self._closed = self._ended = False
        self._over = threading.Event()  # nothing of the group is left
        self._on_close: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._listen, name="RankProcesses", daemon=True)
        self._thread.start()

    # ---- what the engine asks --------------------------------------------------------------------------------------

    @property
    def failure(self) -> RankError | None:
        return self._failure

    def watch(self, heard: Callable[[], None]) -> None:
        with self._lock:
            if self._failure is None:
                self._heard.append(heard)
                return
        heard()

    def status(self) -> tuple[RankStatus, ...]:
        own = RankStatus(0, _HERE, os.getpid(), "ready" if self._failure is None else "failed", 0.0)
        others = (
            RankStatus(rank, member.hello.host, member.hello.pid, member.state, round(member.channel.silent_seconds, 3))
            for rank, member in sorted(self._members.items())
        )
        return own, *others

    def on_close(self, act: Callable[[], None]) -> None:
        """`act` is called once when the group ends, whatever ends it."""
        self._on_close.append(act)

    def tell(self, command: Command) -> None:
        """All other ranks, in order. Raises RankError."""
        if self._failure is not None:
            raise self._failure
        message = encoded(command)
        for rank, member in self._members.items():
            try:
                member.channel.send(message)
            except OSError as error:
                raise self._explained(f"its connection broke ({error})", rank) from None

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Around what all ranks compute: a connection that breaks is the failure of the rank that broke it. Raises RankError; after any
        other error the ranks are no longer at the same place, so that is a failure, too."""
        try:
            yield
        except PeerLostError as error:
            raise self._explained(str(error)) from error
        except Exception as error:
            raise self._failed(0, f"{type(error).__name__}: {error}") from error

    def wait_ready(self) -> None:
        """Until all have loaded their weights. Raises RankError."""
        while any(member.state != "ready" for member in self._members.values()):
            if self._failure is not None:
                raise self._failure
            time.sleep(0.01)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for member in self._members.values():
            with contextlib.suppress(OSError):
                member.channel.send(encoded(End()))
        self._end()

    # ---- the thread ------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        by_channel = {member.channel: rank for rank, member in self._members.items()}
        next_beat, blame = 0.0, math.inf
        while not self._closed and self._failure is None:
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + BEAT_SECONDS
                self._beat()
            try:
                ready = wait(list(by_channel), timeout=max(0.0, next_beat - time.monotonic()))  # type: ignore[arg-type]
            except OSError:
                continue  # one was closed under us, and whoever did it has said why
            for channel in ready:
                rank = by_channel[channel]  # type: ignore[index]
                self._receive(rank)
                if self._members[rank].lost:
                    del by_channel[channel]  # type: ignore[arg-type]
                    blame = min(blame, time.monotonic() + _EXPLAINED_SECONDS)
            if time.monotonic() > blame:  # whoever it lost has not shown, so it is the one that is known to have ended
                rank = next(rank for rank, member in self._members.items() if member.lost)
                self._failed(rank, self._members[rank].lost)

    def _beat(self) -> None:
        """A sign of life to all, and whether there were any from them."""
        message = encoded(Beat())
        for rank, member in self._members.items():
            if member.channel.silent_seconds > self._timeout:
                self._failed(rank, f"nothing was heard of it for {member.channel.silent_seconds:.0f} seconds")
                return
            with contextlib.suppress(OSError):  # what is broken shows when it is read
                member.channel.send(message)

    def _receive(self, rank: int) -> None:
        member = self._members[rank]
        try:
            report = report_of(member.channel.receive())
        except (OSError, EOFError):
            self._failed(rank, self._how_it_ended(member))
        except msgspec.DecodeError as error:
            self._failed(rank, f"it sent something else than a report ({error})")
        else:
            if isinstance(report, Failed) and report.lost:
                member.lost = report.why
            elif isinstance(report, Failed):
                self._failed(rank, report.why)
            elif isinstance(report, Beat):
                member.state = report.state

    def _how_it_ended(self, member: Member) -> str:
        ended = None if member.process is None else member.process.how_it_ended(within_seconds=1.0)
        return ended or "it closed its connection"

    # ---- failing ---------------------------------------------------------------------------------------------------

    def _explained(self, what: str, suspect: int | None = None) -> RankError:
        """The failure behind a broken connection, which whoever listens is about to hear of. `suspect`: whose it was, where that is known;
        it may have ended since it lost another one."""
        end = time.monotonic() + _EXPLAINED_SECONDS
        while self._failure is None and time.monotonic() < end:
            time.sleep(0.01)
        if self._failure is not None:
            return self._failure
        if suspect is not None:
            return self._failed(suspect, what)
        silent = max(self._members, key=lambda rank: self._members[rank].channel.silent_seconds)
        return self._failed(silent, f"it did not take part in what all ranks compute ({what[:200]})")

    def _failed(self, rank: int, why: str) -> RankError:
        """The first failure is the one that counts; what follows from it is none of its own."""
        with self._lock:
            if self._failure is not None or self._closed:
                return self._failure or RankError(rank, self._host(rank), "the group was closed")
            if rank:
                self._members[rank].state = "failed"
            self._failure = RankError(rank, self._host(rank), why)
            heard, self._heard = self._heard, []
        _log.error("%s", self._failure.message)
        self._end()
        for each in heard:
            each()
        return self._failure

    def _host(self, rank: int) -> str:
        return self._members[rank].hello.host if rank else _HERE

    def _end(self) -> None:
        """Nobody computes any more: processes that do not end by themselves are killed, and who waits for another hears of it. Once."""
        with self._lock:
            begun, self._ended = self._ended, True
        if begun:
            self._over.wait(_END_SECONDS)
            return
        for member in self._members.values():
            if member.process is not None:
                member.process.end(at_once=self._failure is not None)
        for member in self._members.values():
            member.channel.close()
            member.state = member.state if member.state == "failed" else "ended"
        for act in self._on_close:
            act()
        self._over.set()
