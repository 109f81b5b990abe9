"""Both Compose files against the Compose specification (as compose_spec reads it), and the fleet's services against the programs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml

from headway.flags.environment import KNOWN
from tests.examples.container_commands import Command, accepted
from tests.examples.prometheus_programs import promtool
from tests.examples.real_routes import is_open_page
from tests.examples.test_compose import instructions

FOLDER = Path(__file__).parents[2] / "examples" / "compose"
FLEET: dict[str, Any] = yaml.safe_load((FOLDER / "fleet.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FLEET["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "headway"}


def command(service: dict[str, Any]) -> Command:
    entry = service.get("entrypoint") or json.loads(instructions("ENTRYPOINT")[0])
    return accepted([*entry, *service["command"]])


@pytest.mark.parametrize("name", ["compose.yaml", "fleet.yaml"])
def test_the_specification_allows_every_key_and_value(name: str) -> None:
    # Through JSON: the parser does not know YAML's merge keys.
    compose_spec.PyCompose.from_json(json.dumps(yaml.safe_load((FOLDER / name).read_text()))).validate()


def test_the_check_would_see_a_mistake() -> None:
    wrong = {"services": {"engine": {"image": "headway", "stop_grace_perod": "45s"}}}
    with pytest.raises(ValueError, match="stop_grace_perod"):
        compose_spec.PyCompose.from_json(json.dumps(wrong))


@pytest.mark.parametrize("name", OURS)
def test_commands_are_accepted_and_end_in_time(name: str) -> None:
    service = OURS[name]
    found = command(service)
    assert found.host in ("0.0.0.0", None)
    assert found.ending_seconds < int(service["stop_grace_period"].removesuffix("s"))
    assert service.get("environment", {}).keys() <= {*KNOWN, "VLLM_SR_STATE_ROOT_DIR"}
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", OURS)
def test_health_is_asked_where_it_is_answered(name: str) -> None:
    service, words = OURS[name], OURS[name]["healthcheck"]["test"]
    url = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)?", " ".join(words))
    assert url is not None
    component = name.partition("-")[0]
    assert is_open_page(component, "http", url[2] or "/health")  # `headway wait` asks /health
    assert int(url[1]) == (command(service).port or 8899)
    if words[1] == "headway":
        assert float(words[-1]) < int(service["healthcheck"]["timeout"].removesuffix("s"))


def test_what_is_named_exists() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", [])) <= SERVICES.keys()
        sources = [mount.split(":")[0] for mount in service["volumes"]]
        assert [source for source in sources if source.startswith(".") and not (FOLDER / source).is_file()] == []
        assert {source for source in sources if not source.startswith(".")} <= FLEET["volumes"].keys()
    engines = (FOLDER / "nginx-engines.conf").read_text()
    addresses = {f"{name}:{command(service).port}" for name, service in OURS.items() if name.startswith("engine")}
    assert set(re.findall(r"server (\S+)", engines)) == addresses
    scraped = yaml.safe_load((FOLDER / "fleet-prometheus.yml").read_text())["scrape_configs"][0]["static_configs"][0]["targets"]
    assert set(scraped) == {*addresses, "runtime:8100", "router:9190"}
    assert all(is_open_page(component, port, "/metrics") for component, port in (("engine", "http"), ("runtime", "http"), ("router", "metrics")))


@pytest.mark.long
def test_promtool_accepts_its_prometheus(tmp_path: Path) -> None:
    for mounted in SERVICES["prometheus"]["volumes"]:
        shutil.copy(FOLDER / mounted.split(":")[0], tmp_path / Path(mounted.split(":")[1]).name)
    done = promtool("check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stderr
