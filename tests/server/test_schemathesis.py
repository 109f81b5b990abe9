"""Schemathesis against the API description: whatever it makes of it, nothing fails on our side, and the answers are as told.

Over HTTP, with a real engine whose forward pass is scripted, so that admission, sampling and scheduling see the bodies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headway.server.app import create_app
from headway.server.openapi import openapi
from headway.server.settings import ServerSettings
from headway.telemetry.metrics import EngineMetrics
from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.scripted_engine import ScriptedEngine

CASES, FEW = 200, 25
CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
WITH_BODY = ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize")
called: Counter[str] = Counter()


@pytest.fixture(scope="module")
def server() -> Iterator[CaseServer]:
    model = ScriptedModel(scripted_tokenizer(bos=True))
    model.say_bytes(b"Hello, world")
    with case_server(*scripted_engine(model)) as running:
        yield running
        running.check_alive()


schema = schemathesis.openapi.from_dict(openapi(create_app(ScriptedEngine(), ServerSettings(), EngineMetrics("tiny"))))


@pytest.mark.timeout(300)
@schema.include(path=list(WITH_BODY)).parametrize()
@hypothesis.seed(20260729)
@settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_no_operation_fails_or_answers_otherwise_than_told(case: schemathesis.Case, server: CaseServer) -> None:
    called[case.path] += 1
    _check(case, server)


@pytest.mark.timeout(300)
@schema.exclude(path=list(WITH_BODY)).parametrize()
@hypothesis.seed(20260729)
@settings(max_examples=FEW, deadline=None, database=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
def test_nor_does_any_other(case: schemathesis.Case, server: CaseServer) -> None:
    _check(case, server)


def _check(case: schemathesis.Case, server: CaseServer) -> None:
    response = case.call(base_url=server.live.url, timeout=20)
    assert response.status_code != 503, response.text
    case.validate_response(response, checks=CHECKS)


def test_each_body_was_tried_often_enough() -> None:
    assert all(called[path] >= CASES for path in WITH_BODY), called
