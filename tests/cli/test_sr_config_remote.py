"""`vllm-sr config get|plan|apply|versions|rollback` against the endpoints of the management address."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import click.testing
import pytest

from headway.cli.sr import vllm_sr
from headway.errors import HeadwayError
from headway.router.config.history.active import ActiveConfig
from headway.router.config.history.versions import VersionStore
from headway.router.management import config as endpoints
from headway.router.management import recipes
from headway.router.management.answer import refusal
from headway.router.management.route import find
from tests.router.config.documents import BASE

OTHER = BASE.replace("priority: 10", "priority: 20")


@dataclass
class Served:
    """A management address with the endpoints of the configuration, and nothing that it would configure."""

    config: ActiveConfig
    requests: list[tuple[str, str]] = field(default_factory=list)

    def handle(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, dict[str, str], bytes]:
        self.requests.append((method, path))
        found = find([*recipes.ROUTES, *endpoints.ROUTES], method, path)
        assert found.route is not None
        activation = SimpleNamespace(generation=1, active_hash="", state="active", error=None, restart=())
        state = SimpleNamespace(config=self.config, settings=SimpleNamespace(environment={}), reloader=SimpleNamespace(activation=activation))
        call = SimpleNamespace(state=state, headers=headers, json=lambda: json.loads(raw), may=lambda permission: False, parameters=found.parameters)
        try:
            answer = asyncio.run(found.route.handler(call))  # type: ignore[arg-type]
        except HeadwayError as error:
            answer = refusal(error)
        return answer.status, answer.headers, answer.encoded()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Served, str]]:
    file = tmp_path / "served.yaml"
    file.write_text(BASE.replace("version: v0.3", "version: v0.3 # ours"))

    async def activate(text: str) -> None:
        if "broken" in text:
            raise HeadwayError("the model does not load", reason="model_failed")

    config = ActiveConfig(file, VersionStore(tmp_path / "versions"), {}, activate)
    config.note(config.text)
    router = Served(config)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, headers, body = router.handle(self.command, unquote(self.path), {name.lower(): value for name, value in self.headers.items()}, raw)
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body)), "content-type": "application/json"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = _answer

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield router, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(endpoint: str, *words: str, code: int = 0) -> click.testing.Result:
    result = click.testing.CliRunner().invoke(vllm_sr, ["config", *words, "--endpoint", endpoint])
    if isinstance(result.exception, HeadwayError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_get(served: tuple[Served, str]) -> None:
    _, url = served
    assert run(url, "get").stdout.startswith("version: v0.3\nlisteners:\n")
    body = json.loads(run(url, "get", "--format", "json").stdout)
    assert body["etag"].startswith('"')
    assert body["config"]["listeners"][0]["port"] == 8899


def test_plan_apply_versions_rollback(served: tuple[Served, str], tmp_path: Path) -> None:
    router, url = served
    before = router.config.text
    new = tmp_path / "new.yaml"
    new.write_text(OTHER)
    planned = run(url, "plan", "--config", str(new)).stdout
    assert "-    priority: 10\n+    priority: 20\n" in planned
    assert "changed: routing.decisions[0].priority" in planned
    assert router.config.text == before
    assert "Version 2 serves." in run(url, "apply", "--config", str(new)).stdout
    assert router.config.text == OTHER
    assert "Nothing changes." in run(url, "apply", "--config", str(new)).stdout
    listed = run(url, "versions").stdout.splitlines()
    assert listed[0].split()[0] == "2"
    assert "(active)" in listed[0]
    assert "Version 1 serves again, as version 3." in run(url, "rollback", "1").stdout
    assert router.config.text == before
    assert json.loads(run(url, "versions", "--json").stdout)["versions"][0]["restored"] == 1


def test_merging_a_patch(served: tuple[Served, str], tmp_path: Path) -> None:
    router, url = served
    patch = tmp_path / "patch.yaml"
    patch.write_text("routing: {strategy: confidence}")
    result = json.loads(run(url, "apply", "--config", str(patch), "--mode", "merge", "--json").stdout)
    assert result["applied"] is True
    assert ("PATCH", "/api/v1/config") in router.requests
    assert "version: v0.3 # ours" in router.config.text
    assert "strategy: confidence" in router.config.text


def test_an_invalid_text_is_planned_with_its_errors_and_never_sent(served: tuple[Served, str], tmp_path: Path) -> None:
    router, url = served
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(BASE.replace("model: small}", "model: smal}", 1))
    assert "error: line 5: providers.defaults.model:" in run(url, "apply", "--config", str(wrong), code=1).stderr
    assert {method for method, _ in router.requests} == {"POST"}
    assert "error: line 5: providers.defaults.model:" in run(url, "plan", "--config", str(wrong), code=1).stderr
    assert "error: line 5: providers.defaults.model:" in run(url, "validate", "--config", str(wrong), code=1).stderr


def test_refusals_say_why(served: tuple[Served, str], tmp_path: Path) -> None:
    _, url = served
    broken, moved = tmp_path / "broken.yaml", tmp_path / "moved.yaml"
    broken.write_text(OTHER + "# broken\n")
    moved.write_text(BASE.replace("8899", "8898"))
    with pytest.raises(HeadwayError, match="does not load"):
        run(url, "apply", "--config", str(broken))
    with pytest.raises(HeadwayError, match=r"RESTART_REQUIRED.*port of listener"):
        run(url, "apply", "--config", str(moved))
    with pytest.raises(HeadwayError, match="not kept"):
        run(url, "rollback", "77")
