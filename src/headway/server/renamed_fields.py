"""Errors about fields of chats, told with the names that the fields have in another API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headway.errors import HeadwayError


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """`names`: of a chat's field -> of this API's. Raises the errors of its body, with `param` renamed."""
    try:
        yield
    except HeadwayError as error:
        field, dot, rest = (error.param or "").partition(".")
        if field in names:
            error.param = names[field] + dot + rest
        raise
