"""What the hub answered -> one of our reasons, with what to do: one table. The token's value never appears."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.artifacts.hub_cache import cached_ids
from headway.artifacts.hub_token import Token
from headway.artifacts.reference import nearest
from headway.artifacts.registry import registry
from headway.artifacts.resumable_download import shown_url
from headway.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of the hub, for messages."""

    repo: str
    revision: str | None
    token: Token
    cache: Path


@dataclass(frozen=True, slots=True)
class _Answer:
    """The first row that matches tells. `code` is the header X-Error-Code or X-Error-Message, `with_token` whether one was sent; None matches all."""

    reason: str
    status: int | None
    code: str | None
    with_token: bool | None
    says: str
    fix: str


_TERMS = "Accept the terms at {page}"
_NOT_FOUND = "the hub answered 404: there is no such repository, or it is private; {token}"
_ANSWERS: Final = (
    _Answer("hub_revision_not_found", None, "RevisionNotFound", None, "the hub has no revision {revision}",
            "See {page}/tree/main for its branches and tags."),
    _Answer("hub_file_not_found", None, "EntryNotFound", None,
            "the hub lists a file that it does not have ({url})", "Try another revision, or tell the owner of the repository."),
    _Answer("hub_gated", None, "GatedRepo", False, "the hub answered {status}: access needs accepted terms; {token}",
            _TERMS + ", then set HF_TOKEN, also inside the container, to a token of that account."),
    _Answer("hub_gated", None, "GatedRepo", True, "the hub answered {status}: access needs accepted terms; {token}",
            _TERMS + " with the account of the token."),
    _Answer("hub_disabled", None, "Access to this resource is disabled.", None,
            "the hub answered {status}: the repository was disabled by the hub or its owner", "Choose another model."),
    _Answer("hub_unauthorized", 401, None, False,
            "the hub answered 401: the repository is private or gated, or the name is wrong; {token}",
            "Set HF_TOKEN to a valid token with read access, also inside the container, or log in with `hf auth login`."),
    _Answer("hub_token_refused", 401, None, True, "the hub answered 401: the token is wrong or has expired; {token}",
            "Make a new token at https://huggingface.co/settings/tokens, or unset the variable if the model is public."),
    _Answer("hub_forbidden", 403, None, None, "the hub answered 403; {token}",
            "Use a token with read access to this repository."),
    _Answer("hub_not_found", 404, None, None, _NOT_FOUND, "{spelling}"),
    _Answer("hub_rate_limited", 429, None, None, "the hub answered 429 (too many requests), again and again; {token}",
            "Wait, or send a token: limits are higher with one."),
)  # fmt: skip


def hub_refusal(status: int, headers: Mapping[str, str], url: str, asked: Asked) -> ArtifactError:
    """The error for an answer of the hub with `status` (>= 400)."""
    found = {name.lower(): value for name, value in headers.items()}
    codes = (found.get("x-error-code"), found.get("x-error-message"))
    if not shown_url(url).startswith(f"{shown_url(hub_endpoint())}/"):
        return _refuse(asked, "hub_storage_refused", "the storage to which the hub sent for a file answered {status} ({url})",
                       "Start again: the hub makes a new link each time. A proxy may hold back that host.", status=status, url=url)  # fmt: skip
    for row in _ANSWERS:
        if (
            row.status in (None, status)
            and (row.code is None or row.code in codes)
            and row.with_token in (None, asked.token.value is not None)
        ):
            return _refuse(asked, row.reason, row.says, row.fix, status=status, url=url)
    if status >= 500:
        return _refuse(asked, "hub_unavailable", "the hub answered {status}, again and again",
                       "Try later; see https://status.huggingface.co.", status=status)  # fmt: skip
    return _refuse(asked, "hub_answer", "the hub answered {status} to {url}", "Check HF_ENDPOINT and proxies.",
                   status=status, url=url)  # fmt: skip


def unreachable(error: Exception, asked: Asked) -> ArtifactError:
    """The error for a hub that did not answer at all."""
    return _refuse(
        asked,
        "hub_unreachable",
        "it is not in the cache {cache}, and the hub cannot be reached at {endpoint} ({what})",
        "Check the network, the proxy variables and HF_ENDPOINT, or bring the files:"
        " `hf download {repo}` where there is a network.",
        what=f"{type(error).__name__}: {str(error)[:300]}",
    )


def no_hub(what: str, asked: Asked) -> ArtifactError:
    """The error for something that answers, but not as a hub does."""
    return _refuse(asked, "hub_answer", "{endpoint} does not answer as a hub does: {what}", "Check HF_ENDPOINT and proxies.", what=what)


def hub_endpoint() -> str:
    """`$HF_ENDPOINT` without its last slash, else the public hub."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _refuse(asked: Asked, reason: str, says: str, fix: str, **facts: Any) -> ArtifactError:
    page = f"https://huggingface.co/{asked.repo}"
    close = nearest(asked.repo, (*cached_ids(asked.cache), *registry()))
    known = {
        "repo": asked.repo,
        "revision": asked.revision or "main",
        "cache": asked.cache,
        "page": page,
        "endpoint": shown_url(hub_endpoint()),
        "token": asked.token.described(),
        "spelling": f"Did you mean {close}?" if close and close != asked.repo else f"Check the spelling at {page}.",
        **facts,
        "url": shown_url(facts.get("url", "")),
    }
    return ArtifactError(
        f"{asked.repo}: {says.format_map(known)}", reason=reason, param="model", fix=fix.format_map(known)
    )
