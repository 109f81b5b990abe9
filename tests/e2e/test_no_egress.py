"""A server speaks to nobody beyond this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.runtime.tasks.family import TaskHeads
from tests.cases.tiny_model import save_tiny_model

ROOT = Path(__file__).parents[2]
WATCHED = ROOT / "tests" / "e2e" / "watched"
NAMESPACE = ["unshare", "--map-root-user", "--net"]


def has_namespaces() -> bool:
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def save_tiny_encoder(folder: Path) -> None:
    TaskHeads().write_fixture(folder, "embedding-bert", seed=1)


@pytest.mark.parametrize(("program", "save_model"), [("engine", save_tiny_model), ("runtime", save_tiny_encoder)])
def test_serving_without_a_way_out_tries_none(program: str, save_model: Callable[[Path], None], tmp_path: Path) -> None:
    """In a network namespace of its own if this machine allows one: there the kernel counts what Python does not see."""
    model = tmp_path / "model"
    model.mkdir()
    save_model(model)
    inside = has_namespaces()
    command = [sys.executable, "-m", "tests.e2e.no_way_out", program, str(model), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "HEADWAY_TEST_NAMESPACE": "1" if inside else ""}
    done = subprocess.run(
        [*NAMESPACE, *command] if inside else command,
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["noted"] > 0  # its own address, at least
    assert found["attempts"] == []
    if inside:
        assert found["no_route"] == 0
        assert found["control"] > 0  # what would have been counted


def test_attempts_are_noted(tmp_path: Path) -> None:
    """The same hook sees a connection, a datagram and a look-up of a name."""
    code = (
        "import socket, contextlib\n"
        "s = socket.socket(); s.settimeout(0.1)\n"
        "with contextlib.suppress(OSError): s.connect(('192.0.2.1', 80))\n"
        "with contextlib.suppress(OSError): socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.2', 53))\n"
        "with contextlib.suppress(OSError): socket.getaddrinfo('hub.test.invalid', 443)\n"
    )
    file = tmp_path / "audit.tsv"
    environment = {**os.environ, "PYTHONPATH": str(WATCHED), "HEADWAY_AUDIT_FILE": str(file)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=30)
    noted = file.read_text()
    assert all(word in noted for word in ("192.0.2.1", "192.0.2.2", "hub.test.invalid"))
