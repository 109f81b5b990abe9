"""Call: one request to the management address, read and authorised."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from headway.router.management.answer import Answer, ManagementError
from headway.router.management.state import ManagementState

if TYPE_CHECKING:
    from headway.router.management.route import Route


@dataclass(frozen=True, slots=True)
class Call:
    """`parameters` are the words of the path, `query` the last value of each name, `headers` lower-case, `role` that of the token (None while no
    token is asked for), `routes` all that there are."""

    state: ManagementState
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes
    peer: str = ""
    role: str | None = None
    routes: Sequence[Route] = ()

    def json(self) -> dict[str, Any]:
        """The body, an object. Raises ManagementError."""
        if not self.raw.strip():
            raise ManagementError("INVALID_INPUT", "a JSON object is needed as the body", fix="Send one with content-type: application/json.")
        try:
            found = orjson.loads(self.raw)
        except orjson.JSONDecodeError as error:
            raise ManagementError("INVALID_INPUT", f"the body is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise ManagementError("INVALID_INPUT", f"the body must be a JSON object, found {type(found).__name__}")
        return found

    def may(self, permission: str) -> bool:
        """Whether the token's role has it. Without tokens nobody is known to have it."""
        return self.role is not None and permission in self.state.access.roles[self.role]

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("1", "true", "yes", "on")

    def number(self, name: str, otherwise: int, most: int) -> int:
        """A whole number of the query between 0 and `most`. Raises ManagementError."""
        text = self.query.get(name)
        if text is None:
            return otherwise
        if not text.isdecimal() or int(text[:20]) > most:
            raise ManagementError("INVALID_INPUT", f"{name} must be a whole number between 0 and {most}, found {text[:40]!r}")
        return int(text)


Handler: TypeAlias = Callable[[Call], Awaitable[Answer]]
