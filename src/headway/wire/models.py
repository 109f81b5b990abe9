"""`GET /v1/models`: the answer."""

from __future__ import annotations

import datetime
from typing import Literal

from typing_extensions import TypedDict


class ModelPermission(TypedDict):
    id: str
    object: Literal["model_permission"]
    created: int
    allow_create_engine: bool
    allow_sampling: bool
    allow_logprobs: bool
    allow_search_indices: bool
    allow_view: bool
    allow_fine_tuning: bool
    organization: str
    group: str | None
    is_blocking: bool


class ModelEntry(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    root: str | None
    parent: str | None
    max_model_len: int
    permission: list[ModelPermission]


class DecisionModel(TypedDict):
    """A model as TypeSafe clients read it; `release_date` is a day."""

    name: str
    description: str
    release_date: str


class ModelList(TypedDict):
    """`data` for clients of OpenAI, `models` for those of TypeSafe."""

    object: Literal["list"]
    data: list[ModelEntry]
    models: list[DecisionModel]


class DecisionModelList(TypedDict):
    models: list[DecisionModel]


def decision_model(name: str, description: str, created: float) -> DecisionModel:
    """`created` in seconds since the epoch."""
    day = datetime.datetime.fromtimestamp(created, datetime.UTC).date().isoformat()
    return {"name": name, "description": description, "release_date": day}


def model_entry(name: str, root: str, created: int, max_model_len: int, parent: str | None = None) -> ModelEntry:
    """`parent`: the model that an adapter changes; `root` is then the folder of the adapter."""
    permission: ModelPermission = {
        "id": f"modelperm-{name}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "headway",
        "root": root,
        "parent": parent,
        "max_model_len": max_model_len,
        "permission": [permission],
    }
