"""A Redis server of a test's own, on a free port, without files."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

SERVER = shutil.which("redis-server")


@contextmanager
def redis_server() -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Port and process."""
    assert SERVER is not None, "install redis-server (Debian) to run this test"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [SERVER, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        client = redis.Redis(port=port)
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
