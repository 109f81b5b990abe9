"""What a failed load means: the text that `/health` shows, and whether trying again can help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headway.errors import ArtifactError, ConfigError, HeadwayError, RequestError, SelfCheckError
from headway.runtime.loading.placement import DOES_NOT_FIT

_ACCESS: Final = "access denied, gated or private"
# Reasons of errors that other parts raise -> the phrase that operators and `headway doctor` look for.
PHRASES: Final[Mapping[str, str]] = {
    "hash_mismatch": "a file hash does not match",
    "revision_required": "a revision is required",
    "hub_gated": _ACCESS,
    "hub_unauthorized": _ACCESS,
    "hub_token_refused": _ACCESS,
    "hub_forbidden": _ACCESS,
    "hub_not_found": _ACCESS,
    "device_not_available": "device not available",
    "does_not_fit": DOES_NOT_FIT,
    "over_budget": DOES_NOT_FIT,
    "out_of_memory": DOES_NOT_FIT,
    "no_family": "no family recognizes the package",
    "licence_not_accepted": "a licence must be accepted",
}
# Trying again can help: the way to the files, or room on the machine.
_RETRIED_REASONS: Final = frozenset(
    {"hub_unreachable", "hub_unavailable", "hub_rate_limited", "hub_storage_refused", "hub_answer", "download_failed",
     "registry_unreachable", "cache_locked", "disk_full", "device_not_available", "out_of_memory"}
)  # fmt: skip
_FINAL_REASONS: Final = frozenset({"over_budget", "lacks_capability", "no_engine"})
_FINAL_CLASSES: Final = (ArtifactError, ConfigError, SelfCheckError, RequestError)
# What reading a file of unexpected content raises where no check was thought of: the file stays as it is.
_DEFECTS: Final = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, AssertionError)
_OUT_OF_MEMORY: Final = ("out of memory", "can't allocate memory", "cannot allocate memory")


def is_final(error: BaseException) -> bool:
    """True for a damaged or refused package, a failed self-check, a device that never can; False for what may pass."""
    if isinstance(error, HeadwayError):
        if error.reason in _RETRIED_REASONS:
            return False
        return error.reason in _FINAL_REASONS or isinstance(error, _FINAL_CLASSES)
    return isinstance(error, _DEFECTS)


def failure_reason(error: BaseException) -> str:
    """`<ErrorClass>: <message>`; the message begins with the known phrase of its kind."""
    message = error.message if isinstance(error, HeadwayError) else str(error) or "no message"
    phrase = PHRASES.get(error.reason) if isinstance(error, HeadwayError) else _phrase_of_foreign(error)
    if phrase is not None and phrase not in message:
        message = f"{phrase}: {message}"
    return f"{type(error).__name__}: {message}"


def _phrase_of_foreign(error: BaseException) -> str | None:
    """Memory that ran out, whoever noticed."""
    is_memory = isinstance(error, MemoryError) or any(words in str(error).lower() for words in _OUT_OF_MEMORY)
    return DOES_NOT_FIT if is_memory else None


