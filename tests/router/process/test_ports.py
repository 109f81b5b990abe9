"""A port that another process has: the start says whose it is and what moves it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from headway.errors import ConfigError
from headway.router.config.document.document import Document
from headway.router.config.load import load_document
from headway.router.process.run import _taken
from headway.router.process.settings import ServeSettings, addresses
from tests.router.config.documents import BASE


def test_every_port_of_a_configuration_is_moved_by_its_key_and_by_the_offset() -> None:
    services = {"management_api": {"port": 7001}, "observability": {"metrics": {"port": 7002}}}
    document = Document.model_validate({"version": "v0.3", "listeners": [{"name": "a", "port": 7000}], "global": {"services": services}})
    found = addresses(document, ServeSettings(Path("config.yaml"), Path(), port_offset=10))
    assert {each.name: each.port for each in found} == {"a": 7010, "management": 7011, "metrics": 7012}


def test_metrics_are_on_loopback_unless_the_configuration_says_otherwise() -> None:
    def host(metrics: dict[str, str]) -> str:
        document = Document.model_validate({"version": "v0.3", "global": {"services": {"observability": {"metrics": metrics}}}})
        return next(each.host for each in addresses(document, ServeSettings(Path("config.yaml"), Path())) if each.name == "metrics")

    assert (host({}), host({"bind_address": "0.0.0.0"})) == ("127.0.0.1", "0.0.0.0")


@pytest.mark.parametrize(
    ("name", "moved_by"),
    [
        ("public", 'change the port of listener "public"'),
        ("management", "change global.services.management_api.port"),
        ("metrics", "change global.services.observability.metrics.port"),
    ],
)
def test_a_port_in_use_is_told_with_what_moves_it(name: str, moved_by: str) -> None:
    document: Document = load_document(BASE).document
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        settings = ServeSettings(Path("config.yaml"), Path())
        [address] = [each for each in addresses(document, settings) if each.name == name]
        taken = type(address)(address.name, address.host, port, address.listener)
        with pytest.raises(ConfigError) as caught:
            _taken(taken, document)
    assert caught.value.reason == "port_in_use"
    assert caught.value.message.startswith(f"{name}: Port {port} on 127.0.0.1 is in use by process ")
    assert moved_by in caught.value.message
    assert "VLLM_SR_PORT_OFFSET" in caught.value.message
    assert "headway stop" not in caught.value.message
