"""A worker as a process: what it says while it loads, failures beside a model that serves, kills, faults, no way out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.artifacts.loopback_hub import COMMIT, REPO, hub
from tests.artifacts.loopback_server import Answer, Request, loopback
from tests.e2e.test_no_egress import NAMESPACE, has_namespaces
from tests.runtime.toy_plugins import CARD, WEIGHTS, tensor_file, write_toy
from tests.runtime.worker_process import install_toys, worker_process


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_toys(tmp_path_factory.mktemp("plugins"))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HEADWAY_CACHE": str(tmp_path / "cache"), "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_ENDPOINT": "http://127.0.0.1:9"}


def models_file(tmp_path: Path, *entries: dict[str, object]) -> str:
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"models": entries}))
    return str(path)


def test_http_answers_at_once_and_tells_the_stage(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    folder = write_toy(tmp_path / "toy", fault="slow", seconds=1.5)
    with worker_process(toys, str(folder), environment={**environment, "TOY_MARK": str(mark)}) as worker:
        worker.until(mark.exists)
        answer = worker.client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (503, "loading")
        assert answer.json()["reason"].startswith("loading weights on ")
        assert worker.client.get("/health/live").status_code == 200
        refused = worker.embed("toy")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
        card = worker.client.get("/v1/models").json()["data"][0]
        assert (card["id"], card["ready"], card["surfaces"], card["golden"]["status"]) == ("toy", False, [], "pending")
        assert worker.until_status("ready")["reason"] is None
        assert worker.embed("toy").json()["data"][0]["embedding"] == [195.0, 2.0]
        assert worker.end() == 0


def test_a_failing_model_beside_one_that_serves(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    good = str(write_toy(tmp_path / "good"))
    entries = [
        {"model": str(write_toy(tmp_path / "broken", fault="describe")), "name": "broken"},
        {"model": str(write_toy(tmp_path / "strange", fault="unstable")), "name": "strange"},
        {"model": good, "name": "good", "device": "cpu"},
        {"model": good, "name": "large", "memory_budget_gib": 1.0},
        {"model": good, "name": "away", "device": "cuda:7"},
        {"model": "acme/tiny", "name": "loose"},
        {"model": str(write_toy(tmp_path / "nc", licence="cc-by-nc-4.0")), "name": "nc"},
        {"model": str(tmp_path), "name": "unknown"},
    ]
    with worker_process(toys, "--models", models_file(tmp_path, *entries), "--load-attempts", "1", environment=environment) as worker:
        body = worker.until_status("degraded")
        reasons = {name: each["reason"] for name, each in body["models"].items()}
        assert {name: each["status"] for name, each in body["models"].items() if each["status"] != "failed"} == {"good": "ready"}
        assert reasons.pop("good") is None
        assert reasons["broken"] == "PackageError: the toy is broken"
        for name, phrase in {
            "strange": "two runs of the same request differ",
            "large": "does not fit, out of memory",
            "away": "device not available",
            "loose": "a revision is required",
            "nc": "a licence must be accepted",
            "unknown": "no family recognizes the package",
        }.items():
            assert phrase in reasons[name]
        assert worker.embed("good").json()["data"][0]["embedding"] == [195.0, 2.0]
        failed = worker.embed("broken")
        assert (failed.status_code, failed.json()["error"]["code"]) == (503, "not_ready")
        assert "vllm_srun_ready 0.0" in worker.client.get("/metrics").text


def test_all_failed(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy", fault="describe")
    with worker_process(toys, str(folder), environment=environment) as worker:
        assert worker.until_status("failed")["reason"] == "PackageError: the toy is broken"


def test_a_failure_that_may_pass_is_shown_while_it_waits(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy", fault="raises")
    with worker_process(toys, str(folder), environment=environment) as worker:
        wanted = "retrying after RuntimeError: the driver is busy (attempt 2 of 5)"
        worker.until(lambda: worker.health()["reason"] == wanted)
        assert worker.health()["status"] == "loading"
        write_toy(folder)
        assert worker.until_status("ready")["models"]["toy"]["status"] == "ready"


def test_killed_in_the_middle_of_a_download(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """The next start goes on with what is there and serves."""
    weights = tensor_file(elements=1 << 20)
    files = {CARD: b"{}", WEIGHTS: weights}
    plain = hub(files)

    def slowly(request: Request) -> Answer:
        answer = plain(request)
        answer.trickle = 0.4 if request.path.endswith(WEIGHTS) and "range" not in request.headers else 0.0
        return answer

    words = (REPO, "--revision", COMMIT)
    with loopback(slowly) as server:
        there = {**environment, "HF_ENDPOINT": server.url}
        with worker_process(toys, *words, environment=there) as worker:
            worker.until(lambda: any(tmp_path.glob("hub/**/*.incomplete")) and "resolving the model: " in (worker.health()["reason"] or ""))
            worker.until(lambda: sum(path.stat().st_size for path in tmp_path.glob("hub/**/*.incomplete")) > len(weights) // 8)
            assert worker.end(signal.SIGKILL) == -signal.SIGKILL
        with worker_process(toys, *words, environment=there) as worker:
            worker.until_status("ready")
            card = worker.client.get("/v1/models").json()["data"][0]
            assert (card["repo"], card["revision"], card["id"]) == (REPO, COMMIT, REPO)
            assert worker.end() == 0
        ranges = [request.headers["range"] for request in server.requests if "range" in request.headers]
        assert len(ranges) == 1
        assert ranges[0] != "bytes=0-"
        asked = len(server.requests)
        with worker_process(toys, *words, environment={**there, "HF_HUB_OFFLINE": "1"}) as worker:
            worker.until_status("ready")
        assert len(server.requests) == asked


def test_killed_while_weights_are_loaded(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    folder = write_toy(tmp_path / "toy", fault="slow", seconds=60)
    socket = tmp_path / "s"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    there = {**environment, "TOY_MARK": str(mark)}
    with worker_process(toys, str(folder), "--uds", str(socket), environment=there) as worker:
        worker.until(mark.exists)
        worker.end(signal.SIGKILL)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert socket.exists()  # a killed process leaves it; the next one takes its place
    write_toy(folder)
    with worker_process(toys, str(folder), "--uds", str(socket), environment=there) as worker:
        worker.until_status("ready")
        assert worker.end() == 0
    assert not socket.exists()


def test_sigterm_while_loading_ends_at_once(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    folder = write_toy(tmp_path / "toy", fault="slow", seconds=60)
    with worker_process(toys, str(folder), environment={**environment, "TOY_MARK": str(mark)}) as worker:
        worker.until(mark.exists)
        assert worker.end() == 0


def test_a_memory_limit(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """What does not fit is refused and tried again; the model beside it serves."""
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 37, 1 << 37)); os.execvp(sys.argv[1], sys.argv[1:])"
    entries = [
        {"model": str(write_toy(tmp_path / "huge", fault="allocates")), "name": "huge"},
        {"model": str(write_toy(tmp_path / "good")), "name": "good"},
    ]
    words = ("--models", models_file(tmp_path, *entries), "--load-attempts", "2")
    with worker_process(toys, *words, environment=environment, before=(sys.executable, "-c", limit)) as worker:
        wanted = "retrying after RuntimeError: does not fit, out of memory: "
        worker.until(lambda: (worker.health()["models"]["huge"]["reason"] or "").startswith(wanted))
        worker.until(lambda: worker.health()["models"]["good"]["status"] == "ready")
        assert worker.embed("good").status_code == 200
        assert worker.end() == 0


def test_one_corrupt_byte_in_a_package_with_recorded_digests(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """The time of the file is that of the intact one, so that only its digest tells."""
    from headway.artifacts.registry import registry
    from headway.artifacts.resolve import resolve

    home = resolve("sparrow-nano").parent
    there = tmp_path / "cache" / "models" / "sparrow-nano"
    shutil.copytree(home, there)
    path = there / next(iter(registry()["sparrow-nano"].files))
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with worker_process(toys, "sparrow-nano", environment=environment) as worker:
        reason = worker.until_status("failed")["reason"]
    assert f"a file hash does not match: {path.name}" in reason


def test_a_device_fault_ends_the_process_with_code_3(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy", fault="device")
    with worker_process(toys, str(folder), "--device", "old", environment=environment) as worker:
        worker.until_status("ready")
        answer = worker.embed("toy", "a text that only its sender may read")
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
        assert worker.health()["models"]["toy"]["status"] == "degraded"
        assert worker.process.wait(10) == 3
        assert "the process ends with code 3" in worker.log
        assert "only its sender may read" not in worker.log


def test_where_no_route_leads_out(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """Local models are served without a network, and a model of the hub says that it cannot be reached.

    In a network namespace of its own if this machine allows one; elsewhere nothing listens where the hub should be.
    """
    socket = tmp_path / "s"
    entries = [{"model": str(write_toy(tmp_path / "good")), "name": "good"}, {"model": REPO, "revision": COMMIT, "name": "far"}]
    words = ("--models", models_file(tmp_path, *entries), "--uds", str(socket), "--load-attempts", "1")
    before = tuple(NAMESPACE) if has_namespaces() else ()
    with worker_process(toys, *words, environment=environment, before=before) as worker:
        body = worker.until_status("degraded")
        assert body["models"]["good"]["status"] == "ready"
        assert "cannot be reached" in body["models"]["far"]["reason"]
        assert worker.embed("good").status_code == 200
        assert worker.end() == 0


def test_a_port_that_is_taken(toys: Path, environment: dict[str, str], tmp_path: Path) -> None:
    folder = str(write_toy(tmp_path / "toy"))
    with worker_process(toys, folder, environment=environment) as worker:
        port = worker.url.rpartition(":")[2]
        second = subprocess.run(
            [*worker.process.args, "--port", port], capture_output=True, text=True, timeout=60, check=False,  # type: ignore[misc]
            env={**os.environ, **environment}, cwd=tmp_path,
        )  # fmt: skip
    assert second.returncode == 1
    assert f"Port {port} on 127.0.0.1 is in use" in second.stderr
