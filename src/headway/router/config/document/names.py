"""Names that a configuration gives to its parts."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

MAX_NAME = 256


def _trimmed(name: str) -> str:
    if name != name.strip():
        raise PydanticCustomError("untrimmed", "a name has no white space at its ends, found {name}", {"name": repr(name)})
    return name


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(_trimmed)]
"""Not empty, no white space at its ends."""
