"""A relay of one TCP connection at a time that can fall silent, as a network does that loses everything."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field


@dataclass
class Relay:
    """Forwards both ways to `port` on this host until `silent` is set; then it keeps its connections and forwards nothing."""

    port: int
    silent: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Relay:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.silent.set()
        for each in (self._listening, *self._open):
            each.close()

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self.port))
                self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if not self.silent.is_set():
                    sink.sendall(piece)
