from __future__ import annotations

from typing import Any

import pytest

from headway.engine.arguments import engine_config
from headway.engine.sampling_params import SamplingParams
from headway.engine.structured.config import structured_config
from headway.engine.structured.request import MAX_DEPTH, StructuredOutputs
from headway.errors import ConfigError, NotBuiltError, RequestError


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def endless() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["items"] = loop
    return loop


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "structured_outputs_invalid"),
        ({"regex": "a", "choice": ["b"]}, "structured_outputs_invalid"),
        ({"regexp": "a"}, "structured_outputs_invalid"),
        ({"regex": "a", "starts_after": [1]}, "structured_outputs_invalid"),
        ({"regex": ""}, "structured_outputs_invalid"),
        ({"regex": "a\0"}, "structured_outputs_invalid"),
        ({"regex": "\ud800"}, "structured_outputs_invalid"),
        ({"json": "{not json"}, "structured_outputs_invalid"),
        ({"json": [1]}, "structured_outputs_invalid"),
        ({"json": {"minimum": float("nan")}}, "structured_outputs_invalid"),
        ({"json_object": False}, "structured_outputs_invalid"),
        ({"choice": []}, "structured_outputs_invalid"),
        ({"choice": "ab"}, "structured_outputs_invalid"),
        ({"choice": ["a", 1]}, "structured_outputs_invalid"),
        ("a", "structured_outputs_invalid"),
        ({"json": nested(MAX_DEPTH + 1)}, "structured_outputs_too_large"),
        ({"json": endless()}, "structured_outputs_too_large"),
        ({"json": "[" * 100_000}, "structured_outputs_too_large"),
        ({"json": {"enum": ["x" * 300_000]}}, "structured_outputs_too_large"),
        ({"grammar": "x" * 300_000}, "structured_outputs_too_large"),
        ({"choice": ["a"] * 9000}, "structured_outputs_too_large"),
    ],
)
def test_what_cannot_be_a_form_is_refused_with_a_reason(given: Any, reason: str) -> None:
    with pytest.raises(RequestError) as refused:
        SamplingParams(structured_outputs=given)
    assert (refused.value.reason, refused.value.param) == (reason, "structured_outputs")


@pytest.mark.parametrize("option", [{"whitespace_pattern": " "}, {"disable_additional_properties": True}])
def test_options_of_other_libraries_are_refused_by_name(option: dict[str, Any]) -> None:
    with pytest.raises(NotBuiltError, match=next(iter(option))):
        StructuredOutputs(json_object=True, **option)


def test_a_schema_keeps_the_order_of_its_properties_and_may_come_as_text() -> None:
    schema = {"properties": {"b": {}, "a": {}}}
    assert StructuredOutputs(json=schema).constraint == StructuredOutputs(json='{"properties": {"b": {}, "a": {}}}').constraint
    assert StructuredOutputs(json=schema).constraint.text == '{"properties":{"b":{},"a":{}}}'
    assert StructuredOutputs(json=nested(MAX_DEPTH)).constraint.kind == "json"


def test_nulls_of_a_body_ask_for_nothing() -> None:
    assert StructuredOutputs.of({"json": None, "regex": "a", "disable_any_whitespace": None}) == StructuredOutputs(regex="a")


@pytest.mark.parametrize("given", [{"backend": "other"}, {"backend": "auto", "nope": 1}, {"disable_any_whitespace": "yes"}, {"reasoning_parser": "qwen3"}])
def test_the_flag_refuses_what_it_does_not_know(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        structured_config(given)


def test_other_backends_are_refused_with_the_one_there_is() -> None:
    for backend in ("guidance", "outlines", "lm-format-enforcer"):
        with pytest.raises(NotBuiltError, match=f"{backend}.*xgrammar"):
            structured_config({"backend": backend})
    assert structured_config({"backend": "xgrammar", "disable_any_whitespace": True}).disable_any_whitespace


def test_the_flag_is_read_when_an_engine_is_configured() -> None:
    dotted = engine_config("m", {"structured_outputs_config": '{"backend": "xgrammar", "disable_any_whitespace": true}'})
    assert dotted.structured_outputs_config == {"backend": "xgrammar", "disable_any_whitespace": True}
    with pytest.raises(NotBuiltError, match="outlines"):
        engine_config("m", {"structured_outputs_config": {"backend": "outlines"}})
