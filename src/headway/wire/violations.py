"""What is wrong with a body, place by place, in the form that FastAPI gives it and System One clients read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.errors import RequestError

Location = tuple[str | int, ...]
_MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Violation:
    """`loc` starts with "body"; `kind` is a pydantic code (`missing`, `too_short`, `union_tag_invalid`, ...)."""

    loc: Location
    message: str
    kind: str

    def under(self, *outer: str | int) -> Violation:
        """The same, seen from further outside."""
        return replace(self, loc=(*outer, *self.loc))


class SchemaError(RequestError):
    """A body that breaks the protocol. Its message is that of all violations."""

    def __init__(self, violations: Sequence[Violation]):
        shown = [_sentence(violation) for violation in violations[:_MAX_SHOWN]]
        if len(violations) > _MAX_SHOWN:
            shown.append(f"and {len(violations) - _MAX_SHOWN} more")
        super().__init__("; ".join(shown), param=_path(violations[0].loc) or None)
        self.violations = tuple(violations)


def _sentence(violation: Violation) -> str:
    path = _path(violation.loc)
    return f"{path}: {violation.message}" if path else violation.message


def _path(loc: Location) -> str:
    out = ""
    for part in loc[1:]:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out[:200]
