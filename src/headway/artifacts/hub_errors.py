"""What the hub answered -> one of our reasons, with what to do. The token's value never appears."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from headway.artifacts.hub_cache import cached_ids
from headway.artifacts.reference import nearest
from headway.artifacts.registry import registry
from headway.errors import ArtifactError

RETRIED_STATUSES: Final = frozenset({429, 500, 502, 503, 504})


def hub_error(
    error: BaseException, repo: str, revision: str | None, token_source: str | None, cache: Path
) -> ArtifactError:
    """Translate an exception of huggingface_hub (or of the HTTP library below it)."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    status = _status(error)
    used = (
        f"the token from {token_source} was sent"
        if token_source
        else "no token was found (looked at HF_TOKEN, HUGGING_FACE_HUB_TOKEN, `hf auth login`)"
    )
    page = f"https://huggingface.co/{repo}"

    def refuse(reason: str, message: str, fix: str) -> ArtifactError:
        return ArtifactError(f"{repo}: {message}", reason=reason, param="model", fix=fix)

    if "HFValidationError" in kinds:
        return refuse("unknown_model", "this is no valid hub id", "Hub ids are owner/name.")
    if "RevisionNotFoundError" in kinds:
        return refuse(
            "hub_revision_not_found",
            f"the hub has no revision {revision or 'main'}",
            f"See {page}/tree/main for its branches and tags.",
        )
    if status == 401:
        fix = (
            "Set HF_TOKEN to a valid token with read access, or log in with `hf auth login`."
            if token_source is None
            else "Make a new token at https://huggingface.co/settings/tokens."
        )
        return refuse(
            "hub_unauthorized",
            f"the hub answered 401: the repository is private or gated, or the name is wrong; {used}",
            fix,
        )
    if "GatedRepoError" in kinds:
        return refuse(
            "hub_gated",
            f"the hub answered {status}: access needs accepted terms; {used}",
            f"Accept the terms at {page} with the account of the token.",
        )
    if status == 403:
        return refuse(
            "hub_forbidden", f"the hub answered 403; {used}", "Use a token with read access to this repository."
        )
    if status == 404 or ("EntryNotFoundError" in kinds and status is not None):
        close = nearest(repo, (*cached_ids(cache), *registry()))
        hint = (
            f"Did you mean {close}?"
            if close and close != repo
            else f"Check the spelling at {page}; a private one needs a token ({used})."
        )
        return refuse("hub_not_found", "the hub answered 404: there is no such repository", hint)
    if status == 429:
        return refuse(
            "hub_rate_limited",
            "the hub answered 429 (too many requests), again and again",
            "Wait, or send a token: limits are higher with one.",
        )
    if status is not None and status >= 500:
        return refuse(
            "hub_unavailable",
            f"the hub answered {status}, again and again",
            "Try later; see https://status.huggingface.co.",
        )
    return refuse(
        "hub_unreachable",
        f"the hub cannot be reached ({type(error).__name__}: {str(error)[:300]})",
        f"Check the network and HF_ENDPOINT, or bring the files: `hf download {repo}` into {cache}.",
    )


def _status(error: BaseException) -> int | None:
    """The HTTP status of the error or of what caused it."""
    seen: Any = error
    for _ in range(5):
        status = getattr(getattr(seen, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
        seen = getattr(seen, "__cause__", None)
    return None
