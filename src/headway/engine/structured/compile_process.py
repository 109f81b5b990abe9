"""`python -m headway.engine.structured.compile_process FD`: tries grammars, each in a process that is forked for it.

A grammar of a stranger may want any amount of time, memory and stack. Here it gets some, and if that does not do, only the forked process ends. What
was compiled here in time can be compiled in the engine. (To send the compiled grammar over would be slower: as text it is large, and writing it takes
a hundred times as long as compiling.) Over the socket FD come the vocabulary, then one socket for each grammar, over which go the grammar and
a verdict. Ends when FD is closed.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import sys
import threading
from typing import Final

from xgrammar import GrammarCompiler, TokenizerInfo

from headway.engine.structured.expression import UnsupportedExpressionError
from headway.engine.structured.framing import receive, send
from headway.engine.structured.grammar_source import compiled
from headway.engine.structured.limits import (
    MOST_BYTES,
    MOST_MESSAGE,
    MOST_SECONDS,
    MOST_STACK,
    MOST_VOCABULARY,
    MOST_WALL_SECONDS,
)
from headway.engine.structured.readable import readable
from headway.engine.structured.trial import tried

FINE, REFUSED, UNSUPPORTED = b"+", b"-", b"?"
_SOURCE_LINE: Final = re.compile(r"^\[[\d:]+\] \S+:\d+: (?:Check failed: .*? is false: )?")  # where in xgrammar an error arose


def main(control_fd: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the socket
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    os.nice(5)  # answers that run come first
    threading.stack_size(MOST_STACK)
    control = socket.socket(fileno=control_fd)
    vocabulary = receive(control, MOST_VOCABULARY)
    if vocabulary is None:
        return
    info = TokenizerInfo.deserialize_json(vocabulary.decode())
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        if os.fork() == 0:
            try:
                control.close()
                _limit()
                worker = threading.Thread(target=_serve, args=(socket.socket(fileno=fds[0]), info))
                worker.start()
                worker.join()
            finally:
                os._exit(0)
        for fd in fds:
            os.close(fd)


def _limit() -> None:
    with open("/proc/self/statm") as statm:
        held = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MOST_BYTES, held + MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(MOST_WALL_SECONDS)


def _serve(link: socket.socket, info: TokenizerInfo) -> None:
    asked = receive(link, MOST_MESSAGE)
    if asked is not None:
        send(link, verdict(info, **json.loads(asked)))


def verdict(info: TokenizerInfo, kind: str, text: str, blanks: bool) -> bytes:
    """`+` and the text to compile (`readable`), or a sentence behind `-`, or behind `?` when it is about something not supported. Raises MemoryError."""
    try:
        text = readable(kind, text)
        grammar = compiled(GrammarCompiler(info, max_threads=1, cache_enabled=False), kind, text, blanks)
        tried(grammar, info, may_be_empty=kind not in ("json", "json_object"))
    except MemoryError:
        raise
    except UnsupportedExpressionError as error:
        return UNSUPPORTED + str(error).encode("utf-8", "replace")
    except Exception as error:  # xgrammar's own, and pydantic's for structural tags: all mean that the grammar is no good
        if "bad_alloc" in str(error):
            raise MemoryError from error
        return REFUSED + _SOURCE_LINE.sub("", str(error))[:1000].encode("utf-8", "replace")
    return FINE + text.encode()


if __name__ == "__main__":
    main(int(sys.argv[1]))
