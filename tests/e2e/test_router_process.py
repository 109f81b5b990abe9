"""One router process: it routes, previews what it does, says how it is, and ends without harming a request."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from headway import __version__
from tests.e2e.router_process import PUBLIC, RunningRouter, backend, command, started_router, two_models
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, answers, chunk, streams
from tests.shim.environments import ROOT


@pytest.fixture(scope="module")
def small() -> Iterator[ScriptedBackend]:
    with backend(answers()) as found:
        yield found


@pytest.fixture(scope="module")
def router(small: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with backend(answers()) as large, started_router(tmp_path_factory.mktemp("router"), two_models(small.endpoint, large.endpoint)) as found:
        yield found


def test_a_chat_goes_where_the_decision_says(router: RunningRouter, small: ScriptedBackend) -> None:
    answer = router.chat("write a python function")
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-vsr-selected-decision"] == "code"
    assert answer.headers["x-vsr-selected-model"] == "large"
    asked = len(small.asked)
    other = router.chat("hello there")
    assert other.headers["x-vsr-selected-model"] == "small"
    assert "x-vsr-selected-decision" not in other.headers
    assert len(small.asked) == asked + 1


def test_the_preview_says_what_the_router_does_and_asks_nobody(router: RunningRouter, small: ScriptedBackend) -> None:
    asked = len(small.asked)
    for text in ("a function", "nothing special", "PYTHON!"):
        seen, done = router.preview(text, trace=True), router.chat(text)
        told = seen.json()
        assert seen.headers["x-vsr-config-hash"]
        assert told["selected_model"] == done.headers["x-vsr-selected-model"]
        assert told["decision_result"]["decision_name"] == done.headers.get("x-vsr-selected-decision", "")
        assert told["eval_trace"][0]["root_trace"]["children"][0]["signal_name"] == "code"
    assert len(small.asked) == asked + 1  # the one chat that small answered


def test_a_preview_of_what_no_preview_takes_is_refused(router: RunningRouter) -> None:
    for body in ({"text": "x", "temperature": 1}, {}, {"text": "x", "messages": []}, {"messages": [{"content": "x"}]}, {"text": "x", "metadata": {"a": 1}}):
        answer = router.client.post(f"{router.management}/api/v1/routing/preview", json=body)
        assert answer.status_code == 400, body
        assert answer.json()["error"]["code"] == "INVALID_INPUT"
    unknown = router.preview("x", model="nobody")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, "INVALID_ROUTING_MODEL")


def test_readiness_is_told_over_http_and_in_the_file(router: RunningRouter) -> None:
    assert router.get("/health").json() == {"status": "healthy", "service": "classification-api"}
    ready, startup = router.get("/ready"), router.get("/startup-status")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert (startup.status_code, startup.json()["phase"]) == (200, "ready")
    kept = json.loads((router.config.parent / "router-runtime.json").read_text())
    assert kept["phase"] == "ready"
    assert kept["pid"] == router.process.pid


def test_unknown_paths_and_methods_fail_closed(router: RunningRouter) -> None:
    lost, wrong = router.get("/api/v1/nothing"), router.get("/api/v1/routing/preview")
    assert (lost.status_code, lost.json()["error"]["code"]) == (404, "NOT_FOUND")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")


def test_status_request_route_and_logs_of_the_command_line(router: RunningRouter) -> None:
    status = json.loads(command(router, "status", "--json").stdout)
    assert status[0]["pid"] == router.process.pid
    assert status[0]["startup"]["ready"]
    told = command(router, "request", "chat", "a", "python", "question")
    assert (told.returncode, told.stdout) == (0, "hello\n")
    assert "large" in told.stderr
    preview = command(router, "route", "preview", "--prompt", "a python question", "--trace")
    assert "selected model:  large" in preview.stdout
    assert "keyword:code" in preview.stdout
    probe = command(router, "route", "probe", "--prompt", "python", "--expect-decision", "code", "--expect-selected-model", "large")
    assert probe.returncode == 0
    assert json.loads(probe.stdout)["passed"]
    wrong = command(router, "route", "probe", "--prompt", "python", "--expect-selected-model", "small")
    assert wrong.returncode == 1
    assert "x-vsr-selected-model" in wrong.stderr
    assert "generation 1 serves" in command(router, "logs").stdout


def test_a_router_of_another_version_is_named_once(tmp_path: Path, small: ScriptedBackend) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import headway\nheadway.__version__ = '99.0.0'\n")
    document = two_models(small.endpoint, small.endpoint)
    with started_router(tmp_path / "router", document, PYTHONPATH=f"{other}{os.pathsep}{ROOT / 'src'}") as newer:
        preview = command(newer, "route", "preview", "--prompt", "hi")
        assert preview.returncode == 0
        assert preview.stderr.count("the router runs version 99.0.0, this command is version " + __version__) == 1
        told = command(newer, "status")
        assert f"version     99.0.0 (this command: {__version__})" in told.stdout
        assert json.loads(command(newer, "status", "--json").stdout)[0]["version"] == "99.0.0"
        refused = command(newer, "config", "rollback", "77")
        assert refused.returncode == 1
        assert "the router runs version 99.0.0" in refused.stderr  # beside what is wrong


def test_a_router_of_the_same_version_is_not_talked_about(router: RunningRouter) -> None:
    assert "version" not in command(router, "route", "preview", "--prompt", "hi").stderr
    assert f"version     {__version__}\n" in command(router, "status").stdout
    assert router.get("/health").headers["x-headway-version"] == __version__


def test_commands_find_the_router_of_their_folder_whatever_its_port(router: RunningRouter) -> None:
    preview = command(router, "route", "preview", "--prompt", "a python question", VLLM_SR_PORT_OFFSET="0")
    assert (preview.returncode, "selected model:  large" in preview.stdout) == (0, True), preview.stderr


def test_a_request_that_runs_is_finished_before_the_end(tmp_path: Path) -> None:
    slow = streams(*[chunk(f"{word} ") for word in range(20)], chunk(finish="stop"), DONE, pause=0.05)
    with backend(slow) as one, started_router(tmp_path, two_models(one.endpoint, one.endpoint)) as router:
        lines: list[str] = []
        begun = threading.Event()

        def read() -> None:
            body = {"model": "auto", "messages": [{"role": "user", "content": "hi"}], "stream": True}
            with httpx.stream("POST", f"{router.url}/v1/chat/completions", json=body, timeout=30, trust_env=False) as answer:
                for line in answer.iter_lines():
                    lines.append(line)
                    begun.set()

        reader = threading.Thread(target=read)
        reader.start()
        assert begun.wait(10)
        assert router.stop() == 0
        reader.join(10)
        assert lines[-2:] == ["data: [DONE]", ""]
        assert sum("19 " in line for line in lines) == 1
        assert not (tmp_path / "router-runtime.json").exists()
        assert list((tmp_path / ".vllm-sr" / "run").iterdir()) == []


def test_stop_ends_the_router_of_this_folder(tmp_path: Path) -> None:
    with started_router(tmp_path, two_models("127.0.0.1:9", "127.0.0.1:9")) as router:
        stopped = command(router, "stop")
        assert stopped.returncode == 0
        assert str(router.process.pid) in stopped.stdout
        assert router.process.wait(10) == 0
        again = command(router, "stop")
        assert again.returncode == 1
        assert "no router" in again.stderr


def test_an_interrupt_ends_it_as_well(tmp_path: Path) -> None:
    with started_router(tmp_path, two_models("127.0.0.1:9", "127.0.0.1:9")) as router:
        router.process.send_signal(signal.SIGINT)
        assert router.process.wait(20) == 0


def test_a_bad_configuration_stops_the_start_with_every_error_and_its_line(tmp_path: Path) -> None:
    document = two_models("127.0.0.1:9", "127.0.0.1:9")
    document["routing"]["decisions"][0]["modelRefs"] = [{"model": "nobody"}]
    document["listeners"][0]["prot"] = 1
    with started_router(tmp_path, document, wait=False) as router:
        assert router.process.wait(30) == 1
        told = router.log.read_text()
        assert "prot" in told
        assert "port" in told
        assert "line " in told
        assert "Traceback" not in told


def test_a_port_that_is_taken_stops_the_start(tmp_path: Path, router: RunningRouter) -> None:
    with started_router(tmp_path, two_models("127.0.0.1:9", "127.0.0.1:9"), wait=False, VLLM_SR_PORT_OFFSET=str(router.offset)) as second:
        assert second.process.wait(30) == 1
        assert f"Port {PUBLIC + router.offset}" in second.log.read_text()


def test_options_of_containers_are_taken_with_one_warning(tmp_path: Path) -> None:
    flags = ("--image", "x", "--image-pull-policy", "never", "--readonly", "--no-minimal", "--platform", "cpu", "--startup-timeout", "60")
    with started_router(tmp_path, two_models("127.0.0.1:9", "127.0.0.1:9"), *flags) as router:
        warnings = [line for line in router.log.read_text().splitlines() if "warning" in line]
        assert len(warnings) == 1
        assert "--image" in warnings[0]
        assert "--readonly" in warnings[0]
    refused = command(router, "serve", "--namespace", "x")
    assert refused.returncode == 2
    assert "kubernetes" in refused.stderr
