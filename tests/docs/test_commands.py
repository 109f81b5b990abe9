"""Every command and every Python snippet of the documentation, run in the order of its page against a real server."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks
from tests.e2e.router_process import free_offset

PORTS = ("8000", "8100")  # in the documentation, of the engine and of the runtime; a free one is put in their place
ROUTER_PORTS = (8899, 8080, 9190)  # of the router, moved together
OFFSET = free_offset()
RUNNABLE = [page for page in PAGES if any(block.tag in ("run", "serve") for block in blocks(page))]


def environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and name != "VLLM_API_KEY"}
    return {**own, "VLLM_SR_PORT_OFFSET": str(OFFSET), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def answers(port: int) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/health", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def server(command: str, port: int, log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=ROOT, env=environment(), stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            deadline = time.monotonic() + 300
            while not (answers(port) and ("headway up" not in command or "Ctrl-C" in log.read_text())):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def at_port(text: str, port: int) -> str:
    for documented in PORTS:
        text = text.replace(documented, str(port))
    for documented in ROUTER_PORTS:
        text = text.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{documented + OFFSET}").replace(f"localhost:{documented}", f"localhost:{documented + OFFSET}")
    return text


def run(block: Block, port: int, folder: Path) -> None:
    text = at_port(block.text, port)
    command = [sys.executable, "-c", text] if block.language == "python" else ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(
        command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False
    )
    said = f"{block}\n{text}\n--- exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    assert done.stdout.strip(), said
    assert '{"error"' not in done.stdout, said


ALONE = [block for page in PAGES for block in blocks(page) if block.tag == "alone"]


@pytest.mark.e2e
@pytest.mark.timeout(400)
@pytest.mark.parametrize("block", ALONE, ids=str)
def test_a_command_that_needs_no_server(block: Block, tmp_path: Path) -> None:
    run(block, 0, tmp_path)


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_the_page_works_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    found = blocks(page)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    # A page without a server of its own relies on `make up`, which is `headway up`.
    served = [at_port(block.text.strip(), port) for block in found if block.tag == "serve"] or [f"headway up --port {port}"]
    assert len(served) == 1
    with server(served[0], port, tmp_path / "server.log"):
        for block in found:
            if block.tag == "run":
                run(block, port, tmp_path)
