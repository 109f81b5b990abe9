"""A Redis server of a test's own, on a free port, without files."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

SERVER = shutil.which("redis-server")


@dataclass(frozen=True)
class ServerTLS:
    """Files of a server that speaks TLS alone. With `demands` it wants certificates of its clients too: `client` is one (certificate, key)."""

    ca: Path
    certificate: Path
    key: Path
    demands: bool = False
    client: tuple[Path, Path] | None = None

    def flags(self, port: int) -> list[str]:
        files = ["--tls-cert-file", str(self.certificate), "--tls-key-file", str(self.key), "--tls-ca-cert-file", str(self.ca)]
        return ["--port", "0", "--tls-port", str(port), *files, "--tls-auth-clients", "yes" if self.demands else "no"]

    def options(self) -> dict[str, Any]:
        """Of a client of redis-py."""
        files = {"ssl_certfile": str(self.client[0]), "ssl_keyfile": str(self.client[1])} if self.client else {}
        return {"ssl": True, "ssl_ca_certs": str(self.ca), **files}


@contextmanager
def redis_server(tls: ServerTLS | None = None, port: int = 0) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Port (that of a server before it, or a free one) and process."""
    assert SERVER is not None, "install redis-server (Debian) to run this test"
    if not port:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
    listening = tls.flags(port) if tls else ["--port", str(port)]
    process = subprocess.Popen(
        [SERVER, *listening, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        client = redis.Redis(host="127.0.0.1", port=port, **(tls.options() if tls else {}))
        until = time.monotonic() + 10
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                if time.monotonic() > until or process.poll() is not None:
                    raise
                time.sleep(0.02)
        client.close()
        yield port, process
    finally:
        process.kill()
        process.wait()
