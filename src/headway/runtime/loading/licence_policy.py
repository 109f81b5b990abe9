"""Which licences need a person's consent before a model is served."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from headway.errors import PackageError

# Words of an identifier that mark a restricted licence: cc-by-nc-4.0, openrail++, a research licence, ...
_RESTRICTED_WORDS: Final = frozenset({"nc", "noncommercial", "research", "openrail"})
_RESTRICTED_PHRASES: Final = ("non-commercial", "openrail")
_WORD: Final = re.compile(r"[a-z0-9]+")


def is_restricted(identifier: str) -> bool:
    """Whether the licence of that identifier allows less than the free ones. Whole words count: `ncsa` is free."""
    lowered = identifier.lower()
    words = set(_WORD.findall(lowered))
    return bool(words & _RESTRICTED_WORDS) or any(phrase in lowered for phrase in _RESTRICTED_PHRASES)


def check_licence(identifier: str | None, accepted: Collection[str]) -> None:
    """Raises PackageError (`licence_not_accepted`) for a restricted licence that is not among `accepted`."""
    if identifier is None or not is_restricted(identifier) or identifier in accepted:
        return
    raise PackageError(
        f"a licence must be accepted: the package is under {identifier}, which restricts its use",
        reason="licence_not_accepted",
        param="accept_licence",
        fix=f"Add `--accept-licence {identifier}` if you accept it.",
    )
