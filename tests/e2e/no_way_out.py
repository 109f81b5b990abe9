"""`python -m tests.e2e.no_way_out PROGRAM MODEL FOLDER`: serve and ask where no route leads out, print what was tried, as JSON.

Run under `unshare -rn`, where there is only the loopback interface. Prints {"attempts": [...], "no_route": n, "control": n}:
addresses beyond this machine that the server named, packets that the kernel could not route while it ran, and the same
after one deliberate attempt, which shows that such packets are counted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import httpx

_UP = 0x1  # IFF_UP
_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_LOCAL = re.compile(r"'(/[^']*|127\.[0-9.]+|::1|localhost|)'|None|b'(127\.[0-9.]+|::1|localhost)?'|\('(127\.[0-9.]+|::1|localhost)', ")
ENGINE_BODIES = (
    ("/v1/completions", {"prompt": "Hi", "max_tokens": 3}),
    ("/v1/completions", {"prompt": "Hi", "max_tokens": 3, "stream": True}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://192.0.2.7/x.png"}}]}]}),
    ("/v1/completions", {"prompt": "Hi", "model": "someone/else"}),
    ("/tokenize", {"prompt": "Hi"}),
    ("/v1/embeddings", {"input": "Hi"}),
)  # fmt: skip
RUNTIME_BODIES = (
    ("/v1/embeddings", {"input": ["Hi", "there"]}),
    ("/v1/embeddings", {"input": [{"image_url": {"url": "http://192.0.2.7/x.png"}}]}),
    ("/v1/embeddings", {"input": "Hi", "model": "someone/else"}),
    ("/v1/bundle", {"tasks": [{"id": "1", "embeddings": {"input": "Hi"}}]}),
    ("/v1/classify", {"input": "Hi"}),
    ("/v1/systemone", {"state": "Hi", "questions": {"q": {"type": "noul", "instructions": "Is it?"}}}),
)  # fmt: skip


class Program(NamedTuple):
    """Words after `python -m`, before and after the model and port; what is asked."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    bodies: tuple[tuple[str, dict[str, Any]], ...]


PROGRAMS = {
    "engine": Program(("headway.cli.main", "serve"), ("--kv-cache-memory-bytes", "8m"), ENGINE_BODIES),
    "runtime": Program(("headway.cli.srun", "serve"), (), RUNTIME_BODIES),
}


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(control, _GET_FLAGS, request + b"\0" * 22)[:18])[1]
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh", b"lo", flags | _UP) + b"\0" * 22)


def no_route() -> int:
    """Packets of this network namespace, of either family, that had nowhere to go."""
    names, values = (line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Ip:"))
    count = int(values[names.index("OutNoRoutes")])
    for line in Path("/proc/net/snmp6").read_text().splitlines():
        if line.startswith("Ip6OutNoRoutes"):
            count += int(line.split()[1])
    return count


def leave_on_purpose() -> None:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.settimeout(0.2)
        probe.connect(("192.0.2.1", 80))


def ask_everything(url: str, bodies: tuple[tuple[str, dict[str, Any]], ...]) -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        for path, body in bodies:
            client.post(path, json=body)
        for path in ("/health", "/metrics", "/v1/models", "/version", "/load", "/openapi.json", "/openapi.yaml", "/docs", "/nope"):
            client.get(path)


def main(program: Program, model: str, folder: Path) -> None:
    if os.environ.get("HEADWAY_TEST_NAMESPACE"):
        loopback_up()
    audit = folder / "audit.tsv"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
    environment |= {"HEADWAY_AUDIT_FILE": str(audit), "HEADWAY_CACHE": str(folder / "cache")}
    environment["PYTHONPATH"] = f"{Path(__file__).parent / 'watched'}{os.pathsep}{os.environ['PYTHONPATH']}"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", *program.before, model, "--port", str(port), *program.after]
    before = no_route()
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 90
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(url + "/health", trust_env=False).status_code == 200:
                    break
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((folder / "server.log").read_text())
            time.sleep(0.1)
        ask_everything(url, program.bodies)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    seen = no_route() - before
    leave_on_purpose()
    lines = audit.read_text().splitlines()
    attempts = [line for line in lines if not _LOCAL.match(line.partition("\t")[2])]
    print(json.dumps({"attempts": attempts, "no_route": seen, "control": no_route() - before, "noted": len(lines)}))


if __name__ == "__main__":
    main(PROGRAMS[sys.argv[1]], sys.argv[2], Path(sys.argv[3]))
