"""A worker as a process whose forward passes are held, killed or fail."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.runtime.arithmetic_model import BREAKS
from tests.runtime.toy_plugins import write_toy
from tests.runtime.worker_process import WorkerProcess, install_toys, worker_process

PRIVATE = "hold this text, which only its sender may read"


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_toys(tmp_path_factory.mktemp("plugins"))


def environment_in(folder: Path) -> dict[str, str]:
    return {"HEADWAY_CACHE": str(folder / "cache"), "HF_ENDPOINT": "http://127.0.0.1:9", "TOY_MARK": str(folder / "mark")}


@pytest.fixture(scope="module")
def shared(toys: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WorkerProcess, Path]]:
    """A worker that takes two jobs at a time, and the file that is there while a pass is held."""
    folder = tmp_path_factory.mktemp("shared")
    toy = write_toy(folder / "toy", fault="hold")
    with worker_process(toys, str(toy), "--max-queue", "2", "--result-cache-entries", "0", environment=environment_in(folder)) as running:
        running.until_status("ready")
        yield running, folder / "mark"


@pytest.fixture
def worker(shared: tuple[WorkerProcess, Path]) -> Iterator[WorkerProcess]:
    yield shared[0]
    shared[1].unlink(missing_ok=True)


@pytest.fixture
def mark(shared: tuple[WorkerProcess, Path]) -> Path:
    return shared[1]


class Asked:
    """An embeddings call on a thread of its own; `answer` is the response, or the error of the connection."""

    def __init__(self, worker: WorkerProcess, text: str, timeout: float = 30, **options: Any):
        self.answer: httpx.Response | httpx.TransportError | None = None

        def ask() -> None:
            try:
                self.answer = httpx.post(f"{worker.url}/v1/embeddings", json={"input": text, "options": options}, timeout=timeout, trust_env=False)
            except httpx.TransportError as error:
                self.answer = error

        self._thread = threading.Thread(target=ask, daemon=True)
        self._thread.start()

    def wait(self) -> Any:
        self._thread.join(40)
        return self.answer


def pending(worker: WorkerProcess) -> float:
    lines = [line for line in worker.client.get("/metrics").text.splitlines() if line.startswith("vllm_srun_queue_depth{")]
    return float(lines[0].rsplit(" ", 1)[1])


def test_a_deadline_of_a_millisecond(worker: WorkerProcess, mark: Path) -> None:
    first = Asked(worker, PRIVATE)
    worker.until(mark.exists)
    late = Asked(worker, "ab", deadline_ms=1)
    worker.until(lambda: pending(worker) == 2 or late.answer is not None)  # it may be late before it is planned
    assert worker.client.get("/health/live").status_code == 200  # answered while the device is busy
    mark.unlink()
    assert first.wait().status_code == 200
    assert late.wait().json()["data"][0]["error"] == "deadline_exceeded"
    assert worker.embed("toy").json()["data"][0]["embedding"] == [195.0, 2.0]
    assert pending(worker) == 0
    assert PRIVATE not in worker.log


def test_a_queue_that_is_full_refuses_and_recovers(worker: WorkerProcess, mark: Path) -> None:
    waiting = [Asked(worker, PRIVATE)]
    worker.until(mark.exists)
    waiting.append(Asked(worker, "second"))
    worker.until(lambda: pending(worker) == 2)
    assert [worker.embed("toy").status_code for _ in range(5)] == [429] * 5
    mark.unlink()
    assert [asked.wait().status_code for asked in waiting] == [200, 200]
    assert worker.embed("toy").status_code == 200


def test_a_client_that_is_gone_in_the_middle_of_a_pass(worker: WorkerProcess, mark: Path) -> None:
    gone = Asked(worker, PRIVATE, timeout=1)
    worker.until(mark.exists)
    assert isinstance(gone.wait(), httpx.ReadTimeout)
    worker.until(lambda: pending(worker) == 0)  # though the pass goes on
    assert mark.exists()
    mark.unlink()
    assert worker.embed("toy").status_code == 200
    assert 'vllm_srun_requests_total{endpoint="embeddings",status="499"} 1.0' in worker.client.get("/metrics").text


def test_killed_in_a_pass_and_started_again(toys: Path, tmp_path: Path) -> None:
    environment = environment_in(tmp_path)
    mark, folder = tmp_path / "mark", write_toy(tmp_path / "toy", fault="hold")
    with worker_process(toys, str(folder), environment=environment) as worker:
        worker.until_status("ready")
        asked = Asked(worker, PRIVATE)
        worker.until(mark.exists)
        assert worker.end(signal.SIGKILL) == -signal.SIGKILL
        assert isinstance(asked.wait(), httpx.TransportError)
        port = worker.url.rpartition(":")[2]
    mark.unlink()
    with worker_process(toys, str(folder), "--port", port, environment=environment) as worker:
        worker.until_status("ready")
        assert worker.embed("toy").json()["data"][0]["embedding"] == [195.0, 2.0]
        assert worker.end() == 0


def test_a_worker_that_ends_answers_what_waits_for_a_pass_that_does_not_end(toys: Path, tmp_path: Path) -> None:
    environment = environment_in(tmp_path)
    folder = write_toy(tmp_path / "toy", fault="hold")
    with worker_process(toys, str(folder), "--shutdown-timeout", "0.2", environment=environment) as worker:
        worker.until_status("ready")
        asked = Asked(worker, PRIVATE)
        worker.until((tmp_path / "mark").exists)
        worker.process.send_signal(signal.SIGTERM)
        answer = asked.wait()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
        (tmp_path / "mark").unlink()
        assert worker.end() == 0


def test_a_pass_that_raises(worker: WorkerProcess) -> None:
    failed = worker.embed("toy", f"only its sender may read this {BREAKS}")
    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "internal_error")
    assert "sender" not in failed.text
    assert worker.embed("toy").status_code == 200
    assert worker.health()["status"] == "ready"
    assert "ZeroDivisionError" in worker.log
    assert "only its sender may read" not in worker.log
