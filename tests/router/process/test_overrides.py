"""What options of the command line make of a configuration, and where its servers listen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.config.document.document import Document
from headway.router.deployments.specification import specifications
from headway.router.process.overrides import Overrides, overridden
from headway.router.process.settings import ServeSettings, addresses

MODELS = {"models": [{"name": name, "backend_refs": [{"name": "one", "endpoint": "127.0.0.1:1"}]} for name in ("a", "b")]}
DECISION = {"name": "d", "modelRefs": [{"model": "a"}, {"model": "b"}]}


def document(**parts: Any) -> Document:
    return Document.model_validate({"version": "v0.3", "providers": MODELS, "routing": {"decisions": [DECISION]}, **parts})


def primary(given: Document, **options: Any) -> Any:
    return specifications(overridden(given, Overrides(**options)))["primary"]


def test_nothing_changes_nothing() -> None:
    given = document()
    assert overridden(given, Overrides()) is given


def test_a_model_replaces_the_artifact_and_drops_its_revision() -> None:
    found = primary(document(), model="/models/judge", engine={"max_num_seqs": 4})
    assert (found.artifact, found.revision, found.public_name, found.engine["max_num_seqs"]) == ("/models/judge", None, "judge", 4)
    assert primary(document(), engine={"max_num_seqs": 4}).revision is not None


def test_the_deployment_that_the_configuration_chose_is_changed() -> None:
    deployment = {"provider": "model_runtime", "artifact": "/models/x", "public_name": "x"}
    catalog = {"deployments": {"mine": deployment}, "system": {"decision_model": {"deployment": "mine"}}}
    changed = overridden(document(**{"global": {"model_catalog": catalog}}), Overrides(model="/models/y"))
    assert specifications(changed)["mine"].artifact == "/models/y"


def test_replicas_get_their_devices() -> None:
    found = primary(document(), replicas=2, platform="cuda", devices=("0", "3"))
    assert [each.device for each in found.replicas] == ["cuda:0", "cuda:3"]
    assert [each.device for each in primary(document(), replicas=3, platform="cpu").replicas] == ["cpu"] * 3
    assert [each.device for each in primary(document(), platform="rocm", devices=("1",)).replicas] == ["rocm:1"]


@pytest.mark.parametrize(
    "options",
    [
        {"devices": ("0",)},
        {"devices": ("0", "0"), "platform": "cuda", "replicas": 2},
        {"devices": ("0", "1"), "platform": "cuda", "replicas": 3},
        {"algorithm": "no_such"},
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        overridden(document(), Overrides(**options))


def test_an_algorithm_holds_for_every_decision() -> None:
    changed = overridden(document(), Overrides(algorithm="random"))
    assert changed.routing is not None
    assert changed.routing.decisions is not None
    assert [decision.algorithm and decision.algorithm.type for decision in changed.routing.decisions] == ["random"]


def places(document: Document, **settings: Any) -> dict[str, tuple[str, int]]:
    found = addresses(document, ServeSettings(Path("config.yaml"), Path(), **settings))
    return {each.name: (each.host, each.port) for each in found}


def test_every_port_moves_with_the_offset() -> None:
    assert places(document(), port_offset=100) == {
        "default": ("127.0.0.1", 8999), "management": ("127.0.0.1", 8180), "metrics": ("127.0.0.1", 9290),
    }  # fmt: skip


def test_a_management_address_for_others_needs_consent_and_tokens() -> None:
    def given(**management: Any) -> Document:
        return document(**{"global": {"services": {"management_api": {"bind_address": "0.0.0.0", **management}}}})

    for bad in (given(), given(remote_exposure=True)):
        with pytest.raises(ConfigError, match="management_api"):
            places(bad)
    tokens = {"mode": "bearer", "tokens": [{"env": "T", "role": "admin"}]}
    assert places(given(remote_exposure=True, auth=tokens))["management"] == ("0.0.0.0", 8080)
