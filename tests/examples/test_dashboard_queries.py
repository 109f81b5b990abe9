"""Every query of the Grafana dashboard, asked of a real Prometheus that scrapes a real server under a real load."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e.tiny_model import tiny_model
from tests.examples.prometheus_programs import program
from tests.shim.environments import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
BOARD = json.loads((ROOT / "examples" / "grafana" / "headway.json").read_text())
QUERIES = [
    (panel["title"], target["expr"]) for panel in BOARD["panels"] if panel["type"] != "row" for target in panel["targets"]
]
SCRAPES_SECONDS = 1
# 48 blocks of 16 tokens for sequences of up to 250 tokens: some are preempted; more than 12 requests that wait are refused.
FLAGS = ("--max-model-len", "512", "--num-gpu-blocks-override", "48", "--max-num-seqs", "8", "--max-num-queued-reqs", "12")
# A rate of these needs an event, and the load makes each of them happen.
MUST_HAPPEN = ("Preemptions", "Refused by a queue limit", "HTTP errors", "Failed", "Prefix cache hits", "Requests", "Output", "Steps")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], log: Path, **variables: str) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ, **variables})
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def until(url: str, log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


class Load:
    """Threads of clients until `stop`: streams and whole answers, clients that leave, bodies that are wrong."""

    def __init__(self, url: str):
        self._url = url
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._client, args=(number,)) for number in range(24)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def _client(self, number: int) -> None:
        with httpx.Client(base_url=self._url, trust_env=False, timeout=60) as client:
            turn = 0
            while not self._over.is_set():
                turn += 1
                kind = (number + turn) % 6
                body = {"prompt": "the same beginning for everybody " * 3 + f"{number} {turn}", "max_tokens": 100, "ignore_eos": True}
                if kind == 0:
                    client.post("/v1/completions", json={"prompt": 5.5})
                elif kind == 1:
                    client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8})
                elif kind == 2:
                    with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as answer:
                        next(answer.iter_bytes(), None)  # and leave
                else:
                    client.post("/v1/completions", json=body)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Prometheus with half a minute of load in it; the load goes on."""
    program("prometheus")
    folder = tmp_path_factory.mktemp("dashboard")
    server, port = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    config = yaml.safe_load((ROOT / "examples" / "prometheus" / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": f"{SCRAPES_SECONDS}s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(ROOT / "examples" / "prometheus" / "alerts.yml")]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [server.removeprefix("http://")]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    serve = [sys.executable, "-m", "headway.cli.main", "serve", str(tiny_model(folder)), "--port", server.rsplit(":", 1)[1], *FLAGS]
    scrape = [str(program("prometheus")), f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
              f"--web.listen-address={port.removeprefix('http://')}", "--log.level=warn"]  # fmt: skip
    variables = {"HEADWAY_CACHE": str(folder), "PYTHONPATH": str(ROOT / "src")}
    with running(serve, folder / "server.log", **variables), running(scrape, folder / "prometheus.log"):
        until(server + "/health", folder / "server.log")
        until(port + "/-/ready", folder / "prometheus.log")
        load = Load(server)
        try:
            time.sleep(30 * SCRAPES_SECONDS)  # rates need points in time
            yield port
        finally:
            load.stop()


def ask(prometheus: str, query: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{prometheus}/api/v1/query", params={"query": query}, trust_env=False, timeout=30).json()
    assert answer["status"] == "success", answer
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


def as_grafana_asks(expression: str) -> str:
    """The variables filled in, "All" chosen for both."""
    return expression.replace("$__rate_interval", "20s").replace("$model_name", ".*").replace("$instance", ".*")


def values(prometheus: str, expression: str) -> list[float]:
    return [float(sample["value"][1]) for sample in ask(prometheus, as_grafana_asks(expression))]


@pytest.mark.parametrize(("title", "expression"), QUERIES, ids=[f"{title}-{i}" for i, (title, _) in enumerate(QUERIES)])
def test_a_query_gives_numbers(prometheus: str, title: str, expression: str) -> None:
    found = values(prometheus, expression)
    assert found, expression
    assert all(math.isfinite(value) and value >= 0 for value in found), (expression, found)


@pytest.mark.parametrize("title", MUST_HAPPEN)
def test_what_the_load_does_is_seen(prometheus: str, title: str) -> None:
    expressions = [expression for name, expression in QUERIES if name == title]
    assert any(sum(values(prometheus, expression)) > 0 for expression in expressions), title


def test_the_choices_of_the_dashboard_have_entries(prometheus: str) -> None:
    for variable in BOARD["templating"]["list"][1:]:
        label = variable["name"]
        series = httpx.get(f"{prometheus}/api/v1/label/{label}/values", params={"match[]": "vllm:num_requests_running"}, trust_env=False).json()
        assert len(series["data"]) == 1, label


def test_the_alerts_are_evaluated_without_errors(prometheus: str) -> None:
    groups = httpx.get(f"{prometheus}/api/v1/rules", trust_env=False).json()["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == 9
    assert {rule["health"] for rule in rules} == {"ok"}
