"""A real `headway serve` that speaks TLS."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.tiny_model import tiny_model
from tests.e2e.tiny_server import free_port
from tests.shim.environments import ROOT


@contextmanager
def tls_server(folder: Path, key: Path, chain: Path) -> Iterator[int]:
    """Its port."""
    port = free_port()
    command = [sys.executable, "-m", "headway.cli.main", "serve", str(tiny_model(folder)), "--port", str(port), "--ssl-keyfile", str(key), "--ssl-certfile", str(chain)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with (folder / "server.log").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment)
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        for _ in range(600):
            try:
                if httpx.get(f"https://127.0.0.1:{port}/health", verify=trusting, trust_env=False).status_code == 200:
                    break
            except httpx.TransportError:
                pass
            assert process.poll() is None, (folder / "server.log").read_text()
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait(20)
