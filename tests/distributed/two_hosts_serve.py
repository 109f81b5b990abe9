"""A tiny model divided over two hosts, started as a guide says: the same command on both, RANK and WORLD_SIZE in the environment.

    unshare -rn python -m tests.distributed.two_hosts_serve MODEL FOLDER SECONDS

Asks, cuts the cable in the middle of a stream, plugs it in again, asks again. SECONDS is `--distributed-timeout-seconds`.
Prints one JSON object; the logs of the nodes are in FOLDER.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import httpx

from tests.distributed.cabled_hosts import Prefix, cabled_hosts, run

URL: Final = "http://127.0.0.1:8000"
GUIDE: Final = {"MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "HEADWAY_CLUSTER_KEY": "0123456789abcdef0123456789abcdef"}
_ANSWER: Final = {"prompt": "hello there", "max_tokens": 24, "ignore_eos": True, "temperature": 0}


def main(model: str, folder: Path, seconds: str) -> None:
    run("ip", "link", "set", "lo", "up")
    with cabled_hosts() as hosts:
        nodes = [_node(hosts["ab"[rank]], rank, model, folder, seconds) for rank in (0, 1)]
        try:
            print(json.dumps(_story(nodes[0])), flush=True)
        finally:
            print(json.dumps([_ended(node) for node in nodes]), flush=True)


def _node(prefix: Prefix, rank: int, model: str, folder: Path, seconds: str) -> subprocess.Popen[bytes]:
    flags = ["--tensor-parallel-size", "2", "--dtype", "float32", "--max-model-len", "8192", "--distributed-timeout-seconds", seconds]
    with (folder / f"node{rank}.log").open("wb") as log:
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "headway.cli.main", "serve", model, *flags], stdout=log, stderr=log, env={**os.environ, **GUIDE, "RANK": str(rank)}
        )


def _ended(node: subprocess.Popen[bytes]) -> int:
    """SIGTERM, and the exit code."""
    node.terminate()
    try:
        return node.wait(60)
    finally:
        node.kill()


def _story(server: subprocess.Popen[bytes]) -> dict[str, Any]:
    with httpx.Client(base_url=URL, trust_env=False, timeout=100) as client:
        _until_ready(client, server)
        before = client.post("/v1/completions", json=_ANSWER).json()["choices"][0]["text"]
        frames: list[str] = []
        with client.stream("POST", "/v1/completions", json={**_ANSWER, "max_tokens": 8000, "stream": True}) as stream:
            for line in stream.iter_lines():
                frames.append(line)
                if len(frames) == 3:
                    run("ip", "link", "set", "cable_a", "down")
        told = client.get("/health").json()
        run("ip", "link", "set", "cable_a", "up")
        _until_ready(client, server)
        after = client.post("/v1/completions", json=_ANSWER).json()["choices"][0]["text"]
    return {"before": before, "after": after, "frames": len(frames), "last": [line for line in frames if line][-2:], "health": told}


def _until_ready(client: httpx.Client, server: subprocess.Popen[bytes]) -> None:
    """Raises RuntimeError when it ends or does not come."""
    end = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError, ValueError):
            if client.get("/health").json().get("status") == "ok":
                return
        time.sleep(0.1)
    raise RuntimeError(f"the server is not there: exit status {server.poll()}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
