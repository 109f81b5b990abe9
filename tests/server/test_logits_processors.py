"""--logits-processors and vllm_xargs over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases.case_server import CaseServer, case_server
from tests.cases.tiny_model import save_tiny_model, tiny_engine
from tests.server.api import COMPLETIONS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CaseServer]:
    folder = tmp_path_factory.mktemp("tiny")
    save_tiny_model(folder)
    with case_server(*tiny_engine(folder, logits_processors=("tests.engine.processors:Force",))) as running:
        yield running
        running.check_alive()


def ask(server: CaseServer, **body: Any) -> Any:
    return server.post(COMPLETIONS, {"prompt": "Hi", "max_tokens": 3, "temperature": 0, **body})


def test_arguments_reach_the_processor(server: CaseServer) -> None:
    answer = ask(server, vllm_xargs={"force": 65, "after": 1}, return_token_ids=True).json()
    assert answer["choices"][0]["token_ids"][1:] == [65, 65]
    assert ask(server, return_token_ids=True).json()["choices"][0]["token_ids"][1:] != [65, 65]


def test_a_failure_ends_the_request_alone_and_says_what_failed(server: CaseServer) -> None:
    response = ask(server, vllm_xargs={"raise": True})
    assert response.status_code == 500
    error = response.json()["error"]
    assert error["reason"] == "logits_processor_failed"
    assert "tests.engine.processors:Force failed: KeyError" in error["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [({"vllm_xargs": {"force": "x"}}, "vllm_xargs"), ({"vllm_xargs": [1]}, "vllm_xargs"), ({"vllm_xargs": {"a": {"b": 1}}}, "vllm_xargs"),
     ({"logits_processors": ["x"]}, "logits_processors")],
)  # fmt: skip
def test_wrong_arguments_are_refused(server: CaseServer, body: dict[str, Any], param: str) -> None:
    response = ask(server, **body)
    assert response.status_code == 400, response.text
    assert str(response.json()["error"]["param"]).startswith(param)
