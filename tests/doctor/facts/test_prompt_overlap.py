"""What differs first between two requests."""

from __future__ import annotations

from typing import Any

import pytest

from headway.doctor.facts.prompt_overlap import overlap_of, text_of

REST = " You are a careful assistant. Follow the handbook word by word and keep to its tone. "


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Now: 2026-11-29 09:14:03.", "Now: 2026-11-30 09:14:03.", "time"),
        ("It is 9:05 PM.", "It is 9:06 PM.", "time"),
        ("Today is Monday.", "Today is Friday.", "time"),
        ("今天是2026年11月29日。", "今天是2026年12月01日。", "time"),
        ("Epoch 1764407643", "Epoch 1764407699", "time"),
        ("Session id: a81f-7", "Session id: b93c-1", "id"),
        ("[9f8a7c21-0b5e-4d11-9c43-77aa10b2c3d4]", "[1c2d3e4f-aaaa-4b22-8d10-0123456789ab]", "id"),
        ("Attempt 3 of many.", "Attempt 4 of many.", "number"),
        ("Dear Anna,", "Dear Bert,", "text"),
    ],
)
def test_kind_of_the_first_difference(first: str, second: str, kind: str) -> None:
    overlap = overlap_of({"prompt": first + REST}, {"prompt": second + REST})
    assert overlap is not None
    assert overlap.kind == kind
    assert overlap.alike > 0.6
    assert (overlap.shown != "") == (kind == "time")


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ({"cache_salt": "a"}, {"cache_salt": "b"}, "cache_salt"),
        ({"lora": "x"}, {"lora": "y"}, "adapter"),
        ({"tools": [{"n": 1}, {"n": 2}]}, {"tools": [{"n": 2}, {"n": 1}]}, "tools"),
        ({"prompt_logprobs": 1}, {}, "prompt_logprobs"),
        ({}, {}, "nothing"),
    ],
)
def test_parameters_keep_requests_apart(one: dict[str, Any], other: dict[str, Any], kind: str) -> None:
    overlap = overlap_of({"prompt": REST, **one}, {"prompt": REST, **other})
    assert overlap is not None
    assert overlap.kind == kind


def test_prefix_is_the_common_start() -> None:
    overlap = overlap_of({"prompt": "same start A"}, {"prompt": "same start B"})
    assert overlap is not None
    assert overlap.prefix == len("same start ")


def test_messages_are_read_in_order() -> None:
    request = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "u"}]}]}
    assert text_of(request).index("s") < text_of(request).index("text")
    assert overlap_of(request, {}) is None
