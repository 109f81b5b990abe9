"""What model names mean on the public address."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import RequestError
from headway.router.config.document.document import Document
from headway.router.generation.generation import ResolvedName
from headway.router.generation.names import ModelNames, compile_names

CARDS = [{"name": "big", "description": "Large.", "loras": [{"name": "law", "description": "Law."}]}]


def names(**rest: Any) -> ModelNames:
    found = {
        "version": "v0.3",
        "providers": {"models": [{"name": "big"}, {"name": "small"}]},
        "routing": {"modelCards": CARDS},
        "recipes": [{"name": "private", "description": "Stays here."}],
        "entrypoints": [{"model_names": ["company/private"], "recipe": "private"}],
        **rest,
    }
    return compile_names(Document.model_validate(found), created=7)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm-sr/auto", ResolvedName(recipe="default")),
        ("auto", ResolvedName(recipe="default")),
        ("MoM", ResolvedName(recipe="default")),
        ("company/private", ResolvedName(recipe="private")),
        ("small", ResolvedName(model="small")),
        ("law", ResolvedName(model="big", lora="law")),
    ],
)
def test_names_and_their_meanings(name: str, expected: ResolvedName) -> None:
    assert names().resolve(name) == expected


@pytest.mark.parametrize(("name", "reason"), [("", "model_required"), ("mom", "model_not_available"), ("x" * 5000, "model_not_available")])
def test_names_without_meaning(name: str, reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        names().resolve(name)
    assert caught.value.reason == reason
    assert len(caught.value.message) < 300


def test_backends_are_listed_only_on_demand() -> None:
    entries = names().listed()
    assert [entry["id"] for entry in entries] == ["vllm-sr/auto", "auto", "MoM", "company/private"]
    assert entries[0] == {
        "id": "vllm-sr/auto", "object": "model", "created": 7, "owned_by": "vllm-semantic-router",
        "description": "The router chooses a model for each request.",
        "routing": {"resolution": "virtual", "selectable": True, "default_route": True, "recipe": "default"},
    }  # fmt: skip
    assert entries[3]["description"] == "Stays here."
    listed = names(**{"global": {"router": {"list_backend_models": True}}}).listed()
    assert [entry["id"] for entry in listed[4:]] == ["big", "small", "law"]
    assert listed[4]["owned_by"] == "upstream-endpoint"
    assert listed[4]["routing"] == {"resolution": "passthrough", "selectable": True, "default_route": False}
