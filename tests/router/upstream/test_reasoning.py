"""What a modelRef's words about reasoning become on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from headway.router.catalog.reasoning_families import REASONING_FAMILIES, TYPES
from headway.router.upstream.reasoning import parameters_of, reasoning_fields, with_reasoning

BODY = {"model": "m", "reasoning_effort": "client", "chat_template_kwargs": {"own": 1}}


@pytest.mark.parametrize(
    ("family", "transport", "on", "effort", "expected"),
    [
        ("qwen3", None, True, None, {"chat_template_kwargs": {"own": 1, "enable_thinking": True}}),
        ("qwen3", None, False, None, {"chat_template_kwargs": {"own": 1, "enable_thinking": False}}),
        ("qwen3-always-on", None, False, None, {"chat_template_kwargs": {"own": 1}}),
        ("deepseek-v3.1", None, True, None, {"chat_template_kwargs": {"own": 1, "thinking": True}}),
        ("gpt-oss", None, True, "high", {"chat_template_kwargs": {"own": 1, "reasoning_effort": "high"}}),
        ("gpt-oss", None, True, None, {"chat_template_kwargs": {"own": 1, "reasoning_effort": "low"}}),  # providers.defaults
        ("gpt", "top_level_effort", True, "high", {"reasoning_effort": "high", "chat_template_kwargs": {"own": 1}}),
        ("gpt", "top_level_effort", False, None, {"reasoning_effort": "none", "chat_template_kwargs": {"own": 1}}),
        ("hunyuan-hy3", None, False, "high", {"chat_template_kwargs": {"own": 1, "reasoning_effort": "no_think"}}),
        ("qwen3.8", None, True, "low", {"chat_template_kwargs": {"own": 1, "enable_thinking": True, "reasoning_effort": "low"}}),
        ("qwen3.8", None, False, "low", {"chat_template_kwargs": {"own": 1, "enable_thinking": False}}),
        ("nemotron-super", None, True, "low", {"chat_template_kwargs": {"own": 1, "enable_thinking": True, "reasoning_effort": "low", "low_effort": True}}),
        ("minimax-m3", None, True, None, {"chat_template_kwargs": {"own": 1, "thinking_mode": "enabled"}}),
        ("deepseek", "deepseek_thinking", True, "max", {"thinking": {"type": "enabled"}, "reasoning_effort": "max", "chat_template_kwargs": {"own": 1}}),
        ("qwen3", "reasoning_object", True, None, {"reasoning": {"enabled": True}, "chat_template_kwargs": {"own": 1}}),
        (
            "claude-effort-adaptive",
            "output_config_effort",
            True,
            "low",
            {"thinking": {"type": "adaptive"}, "reasoning_effort": "low", "chat_template_kwargs": {"own": 1}},
        ),
    ],
)
def test_families_on_the_wire(family: str, transport: str | None, on: bool, effort: str | None, expected: dict[str, Any]) -> None:
    found = with_reasoning(BODY, reasoning_fields(REASONING_FAMILIES[family], transport, on, None, effort, "low"))
    assert found == {"model": "m", **expected}
    assert BODY["reasoning_effort"] == "client"  # the body itself is not changed


def test_a_mode_is_taken_as_it_is_where_the_family_has_it() -> None:
    family = REASONING_FAMILIES["minimax-m3"]
    assert with_reasoning({}, reasoning_fields(family, None, True, "adaptive", None, None)) == {"chat_template_kwargs": {"thinking_mode": "adaptive"}}


def test_an_effort_of_the_defaults_that_the_family_lacks_gives_way_to_its_own() -> None:
    found = with_reasoning({}, reasoning_fields(REASONING_FAMILIES["gpt-oss"], None, True, None, None, "xhigh"))
    assert found == {"chat_template_kwargs": {"reasoning_effort": "medium"}}


@pytest.mark.parametrize(
    ("family", "transport", "names"),
    [("nemotron-super", None, ["enable_thinking", "reasoning_effort", "low_effort"]), ("gpt", "top_level_effort", ["reasoning_effort"])],
)
def test_fields_are_named_as_the_backend_gets_them(family: str, transport: str | None, names: list[str]) -> None:
    assert parameters_of(reasoning_fields(REASONING_FAMILIES[family], transport, True, None, "low", None)) == names


def test_the_table_is_coherent() -> None:
    for family in REASONING_FAMILIES.values():
        assert family.type in TYPES
        assert family.default_mode in family.modes
        assert family.default is None or family.default in family.levels
        assert {effort for effort, _ in family.effort_flags} <= set(family.levels)
