"""The life of a server process: what it logs, tells and leaves behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from headway.cli.server_client import ServerClient
from headway.cli.wait import wait_until_ready
from tests.server.api import COMPLETIONS, error
from tests.server.process import ROOT, ServerProcess, server_process


def get(server: ServerProcess, path: str) -> httpx.Response:
    return httpx.get(server.url + path, trust_env=False)


def until_ready(server: ServerProcess) -> None:
    server.read_note()
    assert wait_until_ready(ServerClient(server.url), 20, lambda state: None).state == "ok"


def test_a_server_serves_logs_and_ends_with_zero(tmp_path: Path) -> None:
    with server_process(tmp_path, "ready", "tiny", "--api-key", "sesame-4711", "--disable-access-log-for-endpoints", "/health,/ping") as server:
        until_ready(server)
        headers = {"Authorization": "Bearer sesame-4711"}
        body = {"prompt": "a private prompt"}
        assert httpx.post(server.url + COMPLETIONS, json=body, headers=headers, trust_env=False).status_code == 200
        metrics = get(server, "/metrics").text
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0
        assert not server.note_file.exists()
        log = server.log
    assert f"Starting vLLM server on {server.url}" in log
    assert "Available routes are:" in log
    assert "Route: /v1/chat/completions, Methods: POST" in log
    assert "Application startup complete." in log
    assert '"POST /v1/completions HTTP/1.1" 200' in log
    assert "GET /health" not in log
    assert "received SIGTERM" in log
    assert "Traceback" not in log
    assert "private prompt" not in log + metrics
    assert "sesame" not in log
    assert re.search(r'vllm:cache_config_info\{.*num_gpu_blocks="12"', metrics)


def test_health_answers_while_loading_and_a_signal_ends_it(tmp_path: Path) -> None:
    with server_process(tmp_path, "loading") as server:
        server.read_note()
        final = wait_until_ready(ServerClient(server.url), 0.5, lambda state: None)
        assert (final.state, final.stage, final.progress) == ("loading", "loading", 0.5)
        error(httpx.post(server.url + COMPLETIONS, json={"prompt": "x"}, trust_env=False), 503, "loading")
        server.process.send_signal(signal.SIGINT)
        assert server.ended() == 0


def test_a_model_that_cannot_be_loaded_ends_the_process(tmp_path: Path) -> None:
    with server_process(tmp_path, "broken") as server:
        assert server.ended() == 1
        assert "The model cannot be served: no such file: weights.bin" in server.log
        assert "Traceback" not in server.log
        assert not server.note_file.exists()


def test_a_dead_engine_turns_health_to_503(tmp_path: Path) -> None:
    with server_process(tmp_path, "dying") as server:
        until_ready(server)
        httpx.post(server.url + COMPLETIONS, json={"prompt": "x"}, trust_env=False)
        server.until_logged("The engine died: kernel gave up")
        response = get(server, "/health")
        assert (response.status_code, response.json()) == (503, {"status": "dead", "reason": "kernel gave up"})
        error(httpx.post(server.url + COMPLETIONS, json={"prompt": "x"}, trust_env=False), 500, "engine_dead")


def test_a_dead_engine_ends_the_process_on_request(tmp_path: Path) -> None:
    with server_process(tmp_path, "dying", "--exit-on-engine-death") as server:
        until_ready(server)
        httpx.post(server.url + COMPLETIONS, json={"prompt": "x"}, trust_env=False)
        assert server.ended() == 1


def test_a_unix_socket_serves_and_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    with server_process(tmp_path, "ready", "--uds", str(path)) as server:
        until_ready(server)
        assert ServerClient(server.url).model() == "smollm2-135m-instruct"
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0
    assert not path.exists()


def test_importing_the_server_does_not_import_torch() -> None:
    code = "import sys, headway.server.run, headway.cli.serve; print('torch' in sys.modules, 'transformers' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "src", capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]
