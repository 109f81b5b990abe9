"""Node: what every part of a configuration document has in common."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError


def not_supported(what: str, advice: str) -> PydanticCustomError:
    """For what vllm-sr has and this router does not."""
    return PydanticCustomError("not_supported", "{key} is not supported by Headway: {advice}", {"key": what, "advice": advice})


class Node(BaseModel):
    """A mapping of the document. Types are strict, a null counts as absent, a key that nobody knows is refused.

    `absent` lists keys of vllm-sr's configuration that this router does not have, with what to do instead: the loader reports them as
    `not_supported`, never as unknown. `other_names` maps older spellings of a key to the one that is used here. In `nullable` are the keys for which null means something.
    """

    absent: ClassVar[Mapping[str, str]] = {}
    nullable: ClassVar[frozenset[str]] = frozenset()
    other_names: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        validate_by_name=True,
        validate_by_alias=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _read_keys(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        known: dict[Any, Any] = {}
        for key, value in data.items():
            if value is not None or key in cls.absent or key in cls.nullable:
                known[cls.other_names.get(key, key)] = value
        return known

    @classmethod
    def nearest(cls, key: str) -> str | None:
        """The known key that looks most like `key`."""
        names = [field.alias or name for name, field in cls.model_fields.items()]
        return next(iter(difflib.get_close_matches(key, names, 1, 0.6)), None)
