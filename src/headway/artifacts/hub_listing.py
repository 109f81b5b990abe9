"""What a hub repository holds: its commit and its files with sizes and hashes, in one request.

Not through huggingface_hub, whose API client first asks the hub for a list of agent programs to report which one runs it;
a server contacts nobody for such ends.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

import httpx
import orjson

from headway.artifacts.hub_errors import Asked, hub_endpoint, hub_refusal, no_hub, unreachable
from headway.artifacts.resumable_download import RETRIED_STATUSES, Promised, wait
from headway.wire.environment_limit import environment_limit

TRIES: Final = 4
SECONDS: Final = 15  # unless HF_HUB_ETAG_TIMEOUT says otherwise; for connecting and for each pause in the answer
MAX_BYTES: Final = 64 << 20  # 100,000 files have about 20 MB
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a commit. `blob` is its name in the cache: the sha256 of large files, the git id of small ones."""

    name: str
    blob: str
    promised: Promised


@dataclass(frozen=True, slots=True)
class Repository:
    """`repo` is the name as the hub spells it."""

    repo: str
    commit: str
    files: Mapping[str, HubFile]


def list_repository(client: httpx.Client, asked: Asked) -> Repository:
    """Ask for the revision. 429 and 5xx are repeated, anything else is final.

    Raises ArtifactError: `hub_unreachable`, `hub_answer` and the reasons of `hub_refusal`.
    """
    revision = f"/revision/{quote(asked.revision, safe='')}" if asked.revision else ""
    url = f"{hub_endpoint()}/api/models/{asked.repo}{revision}?blobs=true"
    seconds = environment_limit("HF_HUB_ETAG_TIMEOUT", SECONDS)
    for attempt in range(1, TRIES + 1):
        try:
            with client.stream("GET", url, timeout=seconds) as response:
                status, headers, at = response.status_code, response.headers, str(response.url)
                body = b"" if response.is_error else _bounded(response)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise unreachable(error, asked) from None
        if status < 400:
            return _repository(body, asked)
        if status not in RETRIED_STATUSES or attempt == TRIES:
            raise hub_refusal(status, headers, at, asked)
        wait(headers.get("retry-after"), attempt)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _bounded(response: httpx.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_BYTES:
            break
    return bytes(body)


def _repository(body: bytes, asked: Asked) -> Repository:
    if len(body) > MAX_BYTES:
        raise no_hub(f"the listing of a repository has more than {MAX_BYTES} bytes", asked)
    try:
        fields = orjson.loads(body)
        commit, siblings, name = fields["sha"], fields["siblings"], fields.get("id") or asked.repo
        files = repository_files(commit, siblings)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise no_hub(f"expected the listing of a repository, found {type(error).__name__}: {str(error)[:120]}", asked) from None
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise no_hub(f"expected a commit of 40 hex digits, found {commit!r:.60}", asked)
    # Only the letter case may differ: a name is a folder of the cache.
    return Repository(name if str(name).lower() == asked.repo.lower() else asked.repo, commit, files)


def repository_files(commit: str, siblings: list[dict[str, Any]]) -> dict[str, HubFile]:
    """The files of a listing by name.

    A mirror that promises no hashes gets blobs named by commit and path. Names that would leave the snapshot are left out.
    """
    files: dict[str, HubFile] = {}
    for sibling in siblings:
        name, lfs = str(sibling["rfilename"]), sibling.get("lfs") or {}
        if not stays_inside(name):
            continue
        large, small = str(lfs.get("sha256", "")), str(sibling.get("blobId", ""))
        nbytes = lfs.get("size", sibling.get("size"))
        nbytes = nbytes if type(nbytes) is int and nbytes >= 0 else None
        if len(large) == 64 and _BLOB.fullmatch(large):
            files[name] = HubFile(name, large, Promised(nbytes, sha256=large))
        elif not lfs and len(small) == 40 and _BLOB.fullmatch(small):
            files[name] = HubFile(name, small, Promised(nbytes, git_blob=small))
        else:
            unnamed = hashlib.sha1(f"{commit}/{name}".encode(), usedforsecurity=False).hexdigest()
            files[name] = HubFile(name, unnamed, Promised(nbytes))
    return files


def stays_inside(name: str) -> bool:
    """Whether a relative path from outside leads to a place below where it starts."""
    if not name or name.startswith("/") or "\\" in name or "\0" in name:
        return False
    return ".." not in PurePosixPath(name).parts
