"""CompileService: compiles grammars that another process has tried. Blocks, so it is for worker threads."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headway.engine.structured.framing import receive, send
from headway.engine.structured.limits import MOST_BYTES, MOST_MESSAGE, MOST_SECONDS, MOST_WALL_SECONDS
from headway.engine.structured.request import INVALID, TOO_LARGE, UNSUPPORTED, Constraint
from headway.errors import EngineDeadError

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar, TokenizerInfo

_PATIENCE: Final = 60  # seconds more than the other side allows itself: it may have to start


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a constraint cannot be used."""

    message: str
    reason: str


class CompileService:
    """The process starts with the first grammar and ends when this object does, or with `close`."""

    def __init__(self, vocabulary: Callable[[], TokenizerInfo]):
        """`vocabulary` is called while the process starts: both take a while."""
        self._vocabulary = vocabulary
        self._info: TokenizerInfo | None = None
        self._lock = threading.Lock()  # guards all
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._end: Callable[[], object] = lambda: None
        self._closed = False

    def compile(self, constraint: Constraint, blanks: bool) -> CompiledGrammar | Refusal:
        """`blanks`: whether JSON may have some. A Refusal tells what is wrong with the constraint, which is final."""
        message = json.dumps({"kind": constraint.kind, "text": constraint.text, "blanks": blanks}).encode()
        answer = self._ask(message)
        if answer is None and not self._alive():  # then it says nothing about the grammar
            answer = self._ask(message)
            if answer is None and not self._alive():
                raise RuntimeError("the process that tries grammars ends again and again")
        if answer is None:
            return Refusal(
                f"{constraint.kind} is too large: compiling it takes more than {MOST_SECONDS} s, {MOST_BYTES >> 20} MiB or the depth there is",
                TOO_LARGE,
            )
        if answer[:1] == b"-":
            return Refusal(f"{constraint.kind} cannot be compiled: {answer[1:].decode()}", INVALID)
        if answer[:1] == b"?":
            return Refusal(answer[1:].decode(), UNSUPPORTED)
        from xgrammar import GrammarCompiler  # loads libraries of which most servers have no need

        from headway.engine.structured.grammar_source import compiled

        return compiled(GrammarCompiler(self.info(), max_threads=1, cache_enabled=False), constraint.kind, answer[1:].decode(), blanks)

    def info(self) -> TokenizerInfo:
        """The vocabulary; starts the process. Raises what making the vocabulary does."""
        with self._lock:
            return self._info or self._start()

    def close(self) -> None:
        with self._lock:
            self._closed, self._control = True, None
            self._end()

    def _ask(self, message: bytes) -> bytes | None:
        """The answer; None when the process that was forked for it ended without one."""
        mine, theirs = socket.socketpair()
        with mine:
            with theirs:
                self._hand_over(theirs)
            mine.settimeout(MOST_WALL_SECONDS + _PATIENCE)
            try:
                send(mine, message)
                return receive(mine, MOST_MESSAGE)
            except OSError:  # it ended, or sits there
                return None

    def _hand_over(self, link: socket.socket) -> None:
        with self._lock:
            if self._control is None or self._process is None or self._process.poll() is not None:
                self._start()
            if self._control is not None:
                socket.send_fds(self._control, [b"g"], [link.fileno()])

    def _alive(self) -> bool:
        with self._lock:
            return self._process is not None and self._process.poll() is None

    def _start(self) -> TokenizerInfo:
        if self._closed:
            raise EngineDeadError("the engine was shut down", reason="shutting_down")
        self._end()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headway.engine.structured.compile_process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # libraries write parts of grammars there, which are texts of requests
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            )  # fmt: skip
        self._end = weakref.finalize(self, _end, self._control, self._process)
        if self._info is None:
            self._info = self._vocabulary()
        send(self._control, self._info.serialize_json().encode())
        return self._info


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """It holds nothing that is worth a farewell. Without this it ends when the socket is closed."""
    control.close()
    process.kill()
    process.wait()
