"""The router's configurations in examples/: valid without a warning, and the addresses in them lead somewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.router.config.load import load_document
from headway.router.process.settings import ServeSettings, addresses
from tests.examples.rendered_chart import NAMES, NAMESPACE, container, kind, values_of

COMPOSE = Path(__file__).parents[2] / "examples" / "compose"
KEYS = {"VLLM_API_KEY": "a", "VLLM_SRUN_API_KEY": "b"}


def backends(config: dict[str, Any]) -> list[str]:
    """host:port of everything that it asks."""
    models = [ref["endpoint"] for model in config["providers"]["models"] for ref in model["backend_refs"]]
    deployments = config["global"]["model_catalog"]["deployments"].values()
    return [*models, *(each["endpoint"].removeprefix("http://") for each in deployments)]


def listening(text: str) -> dict[str, tuple[str, int]]:
    loaded = load_document(text, KEYS)
    assert loaded.diagnostics == ()
    return {each.name: (each.host, each.port) for each in addresses(loaded.document, ServeSettings(Path("config.yaml"), Path()))}


@pytest.mark.parametrize("name", NAMES)
def test_that_of_the_chart(name: str) -> None:
    text = kind(name, "ConfigMap")["router"]["data"]["config.yaml"]
    ports = {port["name"]: port["containerPort"] for port in container(kind(name, "Deployment")["router"])["ports"]}
    found = listening(text)
    assert found["public"] == ("0.0.0.0", ports["http"])
    assert found["metrics"] == ("0.0.0.0", ports["metrics"])
    assert found["management"][0] == "127.0.0.1"
    services = [kind(name, "Service")[component] for component in ("engine", "runtime")]
    assert backends(yaml.safe_load(text)) == [f"{each['metadata']['name']}.{NAMESPACE}.svc:{each['spec']['ports'][0]['port']}" for each in services]
    models = yaml.safe_load(kind(name, "ConfigMap")["runtime"]["data"]["models.yaml"])["models"]
    [embedder] = yaml.safe_load(text)["global"]["model_catalog"]["deployments"].values()
    assert embedder["served_name"] == models[0]["name"]
    served = values_of(name).get("engine", {}).get("servedName", "smollm2-135m-instruct")
    assert yaml.safe_load(text)["providers"]["defaults"]["model"] == served


def test_that_of_the_fleet() -> None:
    services = yaml.safe_load((COMPOSE / "fleet.yaml").read_text())["services"]
    text = (COMPOSE / "router.yaml").read_text()
    found = listening(text)
    assert (found["public"], found["metrics"]) == (("0.0.0.0", 8899), ("0.0.0.0", 9190))
    assert [each.partition(":")[0] for each in backends(yaml.safe_load(text))] == ["gateway", "runtime"]
    assert {"gateway", "runtime"} <= services.keys()
