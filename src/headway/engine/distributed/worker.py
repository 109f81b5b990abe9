"""A rank other than 0: a process that loads its share of a model and does what rank 0 says.

    python -m headway.engine.distributed.worker     (where to report is read from standard input)

It lives as long as rank 0: it ends when it is told, when the connection or standard input closes, or after a silence.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass

import torch

from headway.distributed.control_channel import ControlChannel, connect
from headway.distributed.process_groups import JOIN_SECONDS, PeerLostError
from headway.engine.distributed.messages import Beat, Command, End, Failed, Hello, Task, command_of, encoded
from headway.engine.distributed.rank_processes import BEAT_SECONDS
from headway.engine.distributed.rank_share import RankShare
from headway.errors import HeadwayError
from headway.telemetry.logs import configure_logging

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where to report, as which rank."""

    rank: int
    host: str
    port: int
    key: bytes
    timeout_seconds: float


class Worker:
    """One connection to rank 0: commands are carried out in their order, on the main thread."""

    def __init__(self, meeting: Meeting, channel: ControlChannel):
        self._meeting = meeting
        self._channel = channel
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._state = "loading"

    def run(self) -> None:
        """Until it is told to end. Raises what a command raises."""
        self._channel.send(encoded(Hello(self._meeting.rank, socket.gethostname(), os.getpid())))
        for target in (self._receive, self._beat):
            threading.Thread(target=target, name=target.__name__, daemon=True).start()
        task = self._commands.get()
        if isinstance(task, End):
            return
        assert isinstance(task, Task)
        share = RankShare(task, self._meeting.rank, self._meeting.timeout_seconds)
        self._state = "ready"
        self._channel.send(encoded(Beat(self._state)))
        while True:
            command = self._commands.get()
            if isinstance(command, End):
                return
            share.do(command)

    def _receive(self) -> None:
        while True:
            try:
                command = command_of(self._channel.receive())
            except (OSError, EOFError):
                _leave("rank 0 is gone")
            if not isinstance(command, Beat):
                self._commands.put(command)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            if self._channel.silent_seconds > self._meeting.timeout_seconds:
                _leave(f"nothing was heard of rank 0 for {self._channel.silent_seconds:.0f} seconds")
            try:
                self._channel.send(encoded(Beat(self._state)))
            except OSError:
                _leave("rank 0 is gone")


def _leave(why: str) -> None:
    """From any thread, whatever the others wait for."""
    _log.info("This rank ends: %s", why)
    logging.shutdown()
    os._exit(0)


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()
    _leave("the process that started it ended")


def main() -> None:
    meeting = json.loads(sys.stdin.buffer.readline() or b"{}")
    if not meeting:
        raise SystemExit("this process is started by rank 0 of an engine")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; rank 0 ends us
    configure_logging(f"Rank{meeting['rank']}")
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    found = Meeting(meeting["rank"], meeting["host"], meeting["port"], bytes.fromhex(meeting["key"]), meeting["timeout_seconds"])
    channel = connect(found.host, found.port, found.key, JOIN_SECONDS)
    torch.set_num_threads(max(1, int(os.environ.get("OMP_NUM_THREADS", "1"))))
    try:
        Worker(found, channel).run()
    except Exception as error:
        why = error.message if isinstance(error, HeadwayError) else f"{type(error).__name__}: {error}"
        _log.error("rank %d failed", found.rank, exc_info=None if isinstance(error, HeadwayError) else error)
        with contextlib.suppress(OSError):
            channel.send(encoded(Failed(why[:2000], isinstance(error, PeerLostError))))
        logging.shutdown()
        os._exit(1)
    logging.shutdown()
    os._exit(0)  # threads wait for messages that will not come


if __name__ == "__main__":
    main()
