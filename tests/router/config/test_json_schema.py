"""The JSON Schema says what the loader says, as far as a schema can."""

from __future__ import annotations

import random

import jsonschema_rs
import pytest
import yaml

from headway.errors import NotFoundError, RequestError
from headway.router.config.document.document import Document
from headway.router.config.json_schema import json_schema, schema_etag, view
from headway.router.plugins.table import PLUGINS
from headway.router.signals.table import SIGNAL_KINDS
from tests.router.config.documents import base
from tests.router.config.generated_configs import DEFECTS, generated

STRUCTURAL = (
    "version of another time", "unknown key at the top", "unknown key in a listener", "text for a number", "decision without a name", "negative price",
    "too many retries", "unknown balancing", "odd currency", "modality of nobody", "algorithm: unknown", "plugin: unknown", "plugin: threshold",
    "plugin: no message", "plugin: mode", "deployment: few tokens", "deployment: overflow", "listener: grants nothing", "listener: half of TLS",
    "entrypoint: no names", "preview without time", "strategy", "question: blank",
)  # fmt: skip


@pytest.fixture(scope="module")
def validator() -> jsonschema_rs.Draft202012Validator:
    jsonschema_rs.meta.validate(json_schema())
    return jsonschema_rs.Draft202012Validator(json_schema())


def test_valid_configurations(validator: jsonschema_rs.Draft202012Validator) -> None:
    assert validator.is_valid(base())
    for number in range(len(DEFECTS), len(DEFECTS) + 60):
        text = generated(number).text
        if "decision" not in text.replace("decisions", "").replace("decision-", ""):
            assert validator.is_valid(yaml.safe_load(text)), (number, [error.message for error in validator.iter_errors(yaml.safe_load(text))])


@pytest.mark.parametrize("defect", STRUCTURAL)
def test_defects_that_a_schema_can_see(validator: jsonschema_rs.Draft202012Validator, defect: str) -> None:
    data = base()
    DEFECTS[defect](random.Random(0), data)
    assert not validator.is_valid(data)


def test_nothing_unknown_is_allowed_anywhere(validator: jsonschema_rs.Draft202012Validator) -> None:
    open_ended = [name for name, each in json_schema()["$defs"].items() if each.get("type") == "object" and each.get("additionalProperties") is not False]
    assert open_ended == []
    assert json_schema()["additionalProperties"] is False


def test_surfaces() -> None:
    index = view("index")
    assert index["surfaces"]["signal"]["count"] == len(SIGNAL_KINDS)
    assert index["surfaces"]["plugin"]["names"] == sorted(kind.type for kind in PLUGINS)
    assert {section["path"] for section in index["sections"]} == {"global" if name == "global_" else name for name in Document.model_fields}
    for kind in ("signal", "algorithm", "plugin", "projection"):
        for name in index["surfaces"][kind]["names"]:
            found = view("surface", kind=kind, surface=name)
            if found["schema"] is not None:
                jsonschema_rs.meta.validate(found["schema"])


def test_sections() -> None:
    fields = {field["name"] for field in view("section", path="global.model_catalog.deployments")["fields"]}
    assert {"artifact", "revision", "replicas"} <= fields
    alone = view("section", path="listeners", expanded=True)
    assert jsonschema_rs.Draft202012Validator(alone).is_valid([{"name": "a", "port": 1}])
    assert not jsonschema_rs.Draft202012Validator(alone).is_valid([{"name": "a", "port": "1"}])


def test_what_is_not_there() -> None:
    with pytest.raises(NotFoundError, match=r"global\.nowhere"):
        view("section", path="global.nowhere")
    with pytest.raises(NotFoundError, match="keyword"):
        view("surface", kind="signal", surface="smell")
    with pytest.raises(RequestError, match="index"):
        view("everything")


def test_the_etag_is_that_of_the_content() -> None:
    assert schema_etag() == schema_etag()
    assert schema_etag().startswith('"')
