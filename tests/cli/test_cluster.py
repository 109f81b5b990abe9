"""`headway cluster`: a real Ray head, its status, its end; and what is refused without one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headway.cli.main import run
from headway.compose.ray_node import RayNode, ray_variables, running_node
from headway.errors import ConfigError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HEADWAY_CLUSTER_KEY", raising=False)
    yield tmp_path / "cache"
    note = tmp_path / "cache" / "run" / "ray.json"
    assert not note.exists(), "a Ray node was left"


def call(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        run("headway", ["cluster", *words])
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capfd.readouterr()
    return code, out, err


def headway(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "headway.cli.main", "cluster", *words], capture_output=True, text=True, timeout=110)


def test_without_a_cluster(capfd: pytest.CaptureFixture[str], cache: Path) -> None:
    code, _, err = call(capfd, "status")
    assert (code, "no Ray node was started here" in err) == (1, True)
    code, out, _ = call(capfd, "down")
    assert (code, "Nothing to end" in out) == (0, True)
    code, _, err = call(capfd, "up", "--address", "127.0.0.1:1")
    assert (code, "the key of the cluster is not known here" in err) == (1, True), err


def test_a_note_of_a_process_that_is_gone_ends_nobody(cache: Path) -> None:
    """The id belongs to somebody else now: this test."""
    note = cache / "run" / "ray.json"
    note.parent.mkdir(parents=True)
    mine = psutil.Process()
    note.write_text(json.dumps({"pid": mine.pid, "started": mine.create_time() - 60, "address": "10.0.0.1:6379", "is_head": True}))
    assert running_node() is None
    assert not note.exists()
    note.write_text(json.dumps({"pid": mine.pid, "started": mine.create_time(), "address": "10.0.0.1:6379", "is_head": True}))
    assert running_node() == RayNode(mine.pid, mine.create_time(), "10.0.0.1:6379", True)
    note.unlink()
    note.write_text("{}")
    assert running_node() is None
    note.unlink()


def test_the_token_follows_from_the_key(cache: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        ray_variables({})
    assert caught.value.reason == "key_missing"
    made = ray_variables({}, make=True)
    assert ray_variables({}) == made
    assert (cache / "run" / "cluster-key").stat().st_mode & 0o777 == 0o600
    given = ray_variables({"HEADWAY_CLUSTER_KEY": "k" * 32})
    assert given["RAY_AUTH_TOKEN"] != made["RAY_AUTH_TOKEN"]
    assert given["RAY_AUTH_MODE"] == "token"
    assert "kkkk" not in given["RAY_AUTH_TOKEN"]


def test_what_a_killed_node_left_behind_is_ended(capfd: pytest.CaptureFixture[str], cache: Path) -> None:
    """The process of the note is gone, another of its group is not."""
    words = [sys.executable, "-c", "import subprocess; print(subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL).pid)"]
    leader = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    left = psutil.Process(int(leader.communicate()[0]))
    note = cache / "run" / "ray.json"
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"pid": leader.pid, "started": 0.0, "address": "10.0.0.1:6379", "is_head": True}))
    code, out, _ = call(capfd, "down")
    assert (code, "Ended the Ray node" in out) == (0, True)
    while left.is_running() and left.status() != psutil.STATUS_ZOMBIE:  # the test's own time limit ends this
        time.sleep(0.05)


@pytest.mark.long
def test_a_head_comes_up_tells_its_resources_and_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="hwray") as folder:  # paths of its sockets must be short
        monkeypatch.setenv("RAY_TMPDIR", folder)
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        try:
            up = headway("up", "--port", str(port), "--num-cpus", "2", "--object-store-memory", "80000000")
            assert up.returncode == 0, up.stderr
            assert "headway cluster up --address" in up.stdout
            node = running_node()
            assert node is not None
            mine = [process.pid for process in psutil.process_iter() if _session(process.pid) == node.pid]
            assert len(mine) > 2
            assert "runs here already" in headway("up", "--port", str(port)).stderr

            told = json.loads(headway("status", "--json").stdout)
            assert [(one["alive"], one["cpus"]) for one in told["nodes"]] == [(True, 2.0)]
        finally:
            down = headway("down")
        assert "Ended the Ray node" in down.stdout
        assert not [pid for pid in mine if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
        assert other.poll() is None
        other.kill()
        other.wait()


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0
