"""examples/systemd: the command is one that Headway takes, its times agree, systemd accepts the unit and its sandbox."""

from __future__ import annotations

import configparser
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from headway.cli.main import headway
from headway.cli.serve_config import serve_config
from headway.flags.environment import unknown_variables
from headway.http.shutdown import _LAST_WORDS_SECONDS
from headway.server.run import _ENGINE_STOP_SECONDS

UNIT = Path(__file__).parents[2] / "examples" / "systemd" / "headway.service"


def service() -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(UNIT)
    return dict(parser["Service"])


def test_the_command_is_accepted_without_a_warning() -> None:
    program, command, *words = shlex.split(service()["ExecStart"])
    warnings: list[str] = []
    found = serve_config(words, {}, warnings.append)
    assert (Path(program).name, command, warnings) == ("headway", "serve", [])
    assert found.server.exit_on_engine_death, "else Restart=on-failure never sees that the engine is dead"


def test_it_waits_for_the_address_that_it_serves() -> None:
    _, command, *words = shlex.split(service()["ExecStartPost"])
    waiting = headway.get_command(None, command)  # type: ignore[attr-defined]
    given = waiting.make_context("wait", list(words)).params
    found = serve_config(shlex.split(service()["ExecStart"])[2:], {}, print)
    assert given["url"] == f"http://{found.server.host}:{found.server.port}"
    assert given["timeout"] < float(service()["TimeoutStartSec"])


def test_there_is_time_to_end() -> None:
    found = serve_config(shlex.split(service()["ExecStart"])[2:], {}, print)
    needed = found.server.shutdown_timeout + _LAST_WORDS_SECONDS + _ENGINE_STOP_SECONDS
    assert found.server.shutdown_timeout > 0
    assert float(service()["TimeoutStopSec"]) > needed
    assert service()["KillSignal"] == "SIGTERM"


def test_its_variables_are_known() -> None:
    variables = dict(pair.split("=", 1) for pair in service()["Environment"].split())
    assert unknown_variables(variables) == []
    assert variables["HEADWAY_CACHE"] == f"/var/cache/{service()['CacheDirectory']}"


def analyze(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The unit with a program that exists here in the place of the installed one."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/headway/bin/headway", sys.executable))
    return subprocess.run(["systemd-analyze", *words, str(unit)], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.long
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    done = analyze(tmp_path, "verify", "--man=no")
    assert (done.returncode, [line for line in done.stderr.splitlines() if UNIT.name in line]) == (0, []), done.stderr


@pytest.mark.long
def test_systemd_finds_the_sandbox_tight(tmp_path: Path) -> None:
    """`security` gives 0 (tight) to 10 (exposed); the threshold counts tenths. A unit without any of it gets 9.6."""
    done = analyze(tmp_path, "security", "--offline=yes", "--threshold=25")
    assert done.returncode == 0, done.stdout + done.stderr
