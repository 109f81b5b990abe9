"""examples/compose: what the files say is what Headway takes. Docker itself is not run here."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.cli.main import headway
from headway.cli.serve_config import serve_config
from headway.flags.environment import KNOWN
from tests.examples.prometheus_programs import promtool

FOLDER = Path(__file__).parents[2] / "examples" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICE: dict[str, Any] = COMPOSE["services"]["headway"]


def instructions(name: str) -> list[str]:
    text = (FOLDER / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.removeprefix(name).strip() for line in text.splitlines() if line.startswith(name + " ")]


def test_volumes_that_are_named_exist() -> None:
    for service in COMPOSE["services"].values():
        named = {volume.split(":")[0] for volume in service["volumes"] if not volume.startswith(".")}
        assert named <= COMPOSE["volumes"].keys()


def test_the_command_is_accepted_and_reachable_from_outside_the_container() -> None:
    warnings: list[str] = []
    found = serve_config(SERVICE["command"], {}, warnings.append)
    assert warnings == []
    assert (found.server.host, found.server.exit_on_engine_death) == ("0.0.0.0", True)
    assert SERVICE["ports"] == [f"127.0.0.1:{found.server.port}:{found.server.port}"]
    assert SERVICE["environment"].keys() <= KNOWN.keys()
    assert json.loads(instructions("CMD")[0]) == SERVICE["command"]
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["headway", "serve"]
    assert instructions("EXPOSE") == [str(found.server.port)]


def test_there_is_time_to_end() -> None:
    found = serve_config(SERVICE["command"], {}, print)
    assert (SERVICE["stop_signal"], instructions("STOPSIGNAL")) == ("SIGTERM", ["SIGTERM"])
    assert int(SERVICE["stop_grace_period"].removesuffix("s")) >= found.server.shutdown_timeout + 10


def test_the_health_check_is_a_command_of_headway() -> None:
    kind, program, command, *words = SERVICE["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "headway")
    given = headway.get_command(None, command).make_context(command, list(words)).params  # type: ignore[attr-defined]
    assert given["url"].endswith(":8000")
    assert given["timeout"] < int(SERVICE["healthcheck"]["timeout"].removesuffix("s"))
    assert json.dumps([program, command, *words]) in instructions("HEALTHCHECK")[0]


def test_files_that_are_named_exist() -> None:
    root = (FOLDER / SERVICE["build"]["context"]).resolve()
    assert (root / SERVICE["build"]["dockerfile"]) == FOLDER / "Dockerfile"
    mounted = [v.split(":")[0] for s in COMPOSE["services"].values() for v in s["volumes"] if v.startswith(".")]
    assert [name for name in mounted if not (FOLDER / name).is_file()] == []


def test_nothing_runs_as_root_and_the_cache_outlives_the_container() -> None:
    assert instructions("USER") == ["10001:10001"]
    cache = re.search(r"HEADWAY_CACHE=(\S+)", instructions("ENV")[-1])
    volume = SERVICE["volumes"][0].split(":")[1]
    assert cache is not None
    assert cache[1].startswith(volume + "/")
    assert instructions("VOLUME") == [volume]


@pytest.mark.long
def test_promtool_accepts_its_prometheus(tmp_path: Path) -> None:
    for mounted in COMPOSE["services"]["prometheus"]["volumes"]:
        shutil.copy(FOLDER / mounted.split(":")[0], tmp_path / Path(mounted.split(":")[1]).name)
    done = promtool("check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stderr
