"""Bodies of the decision routes for an API description; `decision_body` and its neighbours check them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

_Content = str | dict[str, Any] | list[Any]


class _Described(BaseModel):
    model_config = ConfigDict(extra="allow")


class SystemOneQuestion(_Described):
    """`criteria`: options by name (choice), the two sides (noul), levels from the lowest (score)."""

    type: Literal["choice", "noul", "score", "set"]
    instructions: _Content | None = None
    criteria: dict[str, Any] | list[Any] | None = None


class SystemOneBody(_Described):
    model: str | None = None
    state: _Content
    questions: dict[str, SystemOneQuestion]


class SystemOneBatchBody(_Described):
    model: str | None = None
    states: list[_Content]
    questions: dict[str, SystemOneQuestion]


class DecisionsBody(_Described):
    """OpenAI's form has `input` and a list of questions; System One's has `state` and an object of them."""

    model: str | None = None
    input: str | list[Any] | None = None
    state: _Content | None = None
    questions: list[dict[str, Any]] | dict[str, SystemOneQuestion]
