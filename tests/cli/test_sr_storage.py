"""`vllm-sr storage reembed`: what it asks and what it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import click.testing
import pytest

from headway.cli.sr import vllm_sr

HELD = {"response_cache": {"old": 3}, "vector_stores": {"new": 2}}
DONE = {"response_cache": [{"recipe": "default", "done": 3, "failed": 0, "stopped": None}], "vector_stores": {"done": 2, "failed": 1, "stopped": "timeout"}}


@pytest.fixture
def router() -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    asked: list[str] = []
    told: dict[str, Any] = {"GET": HELD, "POST": DONE}

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            body = json.dumps(told[self.command]).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked, told
    server.shutdown()
    thread.join()
    server.server_close()


def run(url: str, *options: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(vllm_sr, ["storage", "reembed", "--endpoint", url, *options])


def test_a_dry_run_only_looks(router: tuple[str, list[str], dict[str, Any]]) -> None:
    url, asked, _ = router
    found = run(url, "--dry-run")
    assert (found.exit_code, asked) == (0, ["GET /api/v1/storage/representations"])
    assert found.output == "response_cache: 3 vectors of old\nvector_stores: 2 vectors of new\n"


def test_what_failed_is_said_and_is_the_exit_code(router: tuple[str, list[str], dict[str, Any]]) -> None:
    url, asked, told = router
    found = run(url)
    assert (found.exit_code, asked) == (1, ["POST /api/v1/storage/reembed"])
    assert found.output == "response cache, recipe default: 3 made again\nvector stores: 2 made again, 1 not (timeout)\n"
    told["POST"] = {**DONE, "vector_stores": None}
    assert run(url).exit_code == 0
    assert json.loads(run(url, "--json").output) == told["POST"]
