"""Group A, forms that are wrong or expensive (A11): refused with what is wrong, or followed; nobody else waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import error


@pytest.fixture(scope="module")
def server() -> Iterator[CaseServer]:
    model = ScriptedModel(scripted_tokenizer())
    model.say_bytes(b"as free as it likes")
    with case_server(*scripted_engine(model)) as running:
        yield running


@pytest.fixture(autouse=True)
def alive_afterwards(server: CaseServer) -> Iterator[None]:
    yield
    server.check_alive()


def _schema(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"guided_regex": "foo**"}, "foo"),
        ({"guided_regex": "("}, "("),
        (_schema({"type": "strnig"}), "strnig"),
        (_schema({"$ref": "#/nope"}), "nope"),
        (_schema({"minimum": 5, "maximum": 1, "type": "integer"}), "minimum"),
        ({"response_format": {"type": "json_schema"}}, "json_schema"),
    ],
)
def test_a11_what_is_wrong_is_said(server: CaseServer, form: dict[str, Any], said: str) -> None:
    found = error(server.chat(**form), 400)
    assert said in found["message"]


def test_a11_a_pattern_that_backtracks_elsewhere(server: CaseServer) -> None:
    """`(a+)+$` on a long text: there is no backtracking here."""
    answer = server.complete(structured_outputs={"regex": "(a+)+$"}, max_tokens=60, temperature=1.0, seed=3)
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert set(answer.json()["choices"][0]["text"]) == {"a"}


def test_a11_a_schema_that_contains_itself(server: CaseServer) -> None:
    """Followed: what comes is of the form, or refused when it is asked for."""
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "n": {"type": "integer", "maximum": 9, "minimum": 0}}, "required": ["n"],
            "additionalProperties": False}  # fmt: skip
    answer = server.chat(**_schema(tree), max_tokens=400, temperature=1.0, seed=5)
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    if choice["finish_reason"] == "stop":
        assert "n" in json.loads(choice["message"]["content"])


def test_a11_an_object_of_5000_keys_hurts_nobody(server: CaseServer) -> None:
    """Compiled or refused, off the loop: plain requests are answered meanwhile."""
    large = {"type": "object", "properties": {f"key{i}": {"type": "integer"} for i in range(5000)}, "required": [f"key{i}" for i in range(5000)]}
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(server.chat(**_schema(large), max_tokens=5)))
    asking.start()
    plain = [server.complete(max_tokens=4) for _ in range(5)]
    asking.join(60)
    assert [each.status_code for each in plain] == [200] * 5
    assert answers[0].status_code in (200, 400), answers[0].text
