"""Schemathesis against the API description, on a real worker process with tiny models of every surface."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headway.runtime.decisions.label_logits.family import LabelLogitsFamily
from headway.runtime.family import ModelFamily
from headway.runtime.http.app import POSTS
from headway.runtime.http.openapi import openapi
from headway.runtime.tasks.family import TaskHeads
from tests.runtime.worker_process import WorkerProcess, worker_process

CASES = 200  # per POST route, half of them good
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
MODELS: dict[str, tuple[ModelFamily, str]] = {
    "vectors": (TaskHeads(), "embedding-bert"),
    "labels": (TaskHeads(), "sequence-bert"),
    "pairs": (TaskHeads(), "rerank-bert"),
    "answers": (LabelLogitsFamily(), "llama"),
}
called: Counter[str] = Counter()
answered: Counter[str] = Counter()


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    folder = tmp_path_factory.mktemp("models")
    for name, (family, variant) in MODELS.items():
        (folder / name).mkdir()
        family.write_fixture(folder / name, variant, seed=1)
    with worker_process(folder, *(str(folder / name) for name in MODELS)) as running:
        running.until_status("ready")
        assert [card["id"] for card in running.client.get("/v1/models").json()["data"]] == [*MODELS]
        yield running
        assert running.health()["status"] == "ready"


def described() -> dict[str, object]:
    """The description with the names of these models, so that most bodies get past the choice of one."""
    document: dict[str, Any] = copy.deepcopy(openapi())
    schemas = document["components"]["schemas"]
    schemas["ModelName"] = {"enum": [*MODELS, "nobody"]}
    for name, model in (("EmbeddingsRequest", "vectors"), ("ClassifyRequest", "labels"), ("RerankRequest", "pairs"), ("SystemOneRequest", "answers")):
        schemas[name]["required"] = [*schemas[name].get("required", ()), "model"]
        schemas[name]["properties"]["model"] = {"enum": [model]}
    schemas["SystemOneRequest"]["required"] += ["state", "questions"]
    for name in ("images", "videos"):  # this model takes text only
        del schemas["SystemOneRequest"]["properties"][name]
    schemas["SystemOneRequest"]["properties"]["options"]["properties"].pop("max_tokens")  # nor has it windows
    return document


def bad_questions() -> dict[str, object]:
    """`described`, but with a question as one flat object: schemathesis cannot negate a union below the root."""
    document: dict[str, Any] = described()
    schemas = document["components"]["schemas"]
    kinds = schemas["Question"]["anyOf"]
    properties = {name: field for kind in reversed(kinds) for name, field in kind["properties"].items()}
    properties["type"] = {"enum": ["choice", "noul", "score", "set", "span"]}
    schemas["Question"] = {"type": "object", "required": ["type", "criteria"], "properties": properties}
    return document


def _schema(document: dict[str, object], mode: GenerationMode) -> schemathesis.BaseSchema:
    made = schemathesis.openapi.from_dict(document)
    made.config.generation.update(modes=[mode])
    return made


good = _schema(described(), GenerationMode.POSITIVE)
bad = _schema(bad_questions(), GenerationMode.NEGATIVE)


effort = settings(
    max_examples=CASES // 2,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


def check(case: schemathesis.Case, worker: WorkerProcess) -> None:
    called[case.path] += 1
    response = case.call(base_url=worker.url, timeout=20)
    assert response.status_code != 503, response.text
    answered[case.path] += response.status_code == 200
    case.validate_response(response, checks=CHECKS)


@pytest.mark.timeout(300)
@good.parametrize()
@hypothesis.seed(20261129)
@effort
def test_bodies_as_described(case: schemathesis.Case, worker: WorkerProcess) -> None:
    check(case, worker)


@pytest.mark.timeout(300)
@bad.include(method="POST").parametrize()
@hypothesis.seed(20261129)
@effort
def test_bodies_that_break_the_description(case: schemathesis.Case, worker: WorkerProcess) -> None:
    check(case, worker)


def test_each_body_was_tried_often_enough_and_some_were_good() -> None:
    assert all(called[path] >= CASES for path in POSTS), called
    assert all(answered[path] > 0 for path in POSTS), answered
