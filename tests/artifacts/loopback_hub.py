"""As much of the Hugging Face hub as finding and downloading a model needs, on loopback: listing, files, redirects, hashes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, Literal
from urllib.parse import unquote

from tests.artifacts.loopback_server import Answer, Request, ranged

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "acme/tiny"


def json_answer(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


def is_large(name: str) -> bool:
    """Files that the hub keeps in its storage for large files."""
    return name.endswith((".safetensors", ".gguf", ".bin"))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def blob_name(name: str, content: bytes) -> str:
    """The ETag of a file, and its name in the cache."""
    return sha256(content) if is_large(name) else git_blob(content)


def hub(
    files: dict[str, bytes], *, repo: str = REPO, hashes: Literal["all", "sizes", "none"] = "all", storage: str | None = None, listed: dict[str, bytes] | None = None,
    commit: str = COMMIT,
) -> Callable[[Request], Answer]:
    """Answers for one public repository.

    `storage` is the URL of another server to which large files are redirected. `listed` replaces the contents that sizes
    and hashes are taken from. `hashes` "sizes" and "none": what the listing of a plain mirror has beside names.
    """
    promised = {**files, **(listed or {})}

    def answer(request: Request) -> Answer:
        path = unquote(request.path.partition("?")[0])
        known = re.sub(re.escape(repo), repo, path, count=1, flags=re.IGNORECASE)
        if path != known:
            return Answer(307, b"", {"Location": request.path.replace(path, known, 1)})
        if path in (f"/api/models/{repo}", f"/api/models/{repo}/revision/main", f"/api/models/{repo}/revision/{commit}"):
            siblings = [_sibling(name, promised[name], hashes) for name in promised]
            return json_answer({"id": repo, "modelId": repo, "sha": commit, "siblings": siblings, "private": False, "tags": [], "downloads": 0})
        if path == f"/api/models/{repo}/tree/{commit}":
            return json_answer([_entry(name, content) for name, content in promised.items()])
        for name, content in files.items():
            if path in (f"/{repo}/resolve/{commit}/{name}", f"/{repo}/resolve/main/{name}"):
                return _file(request, name, content, storage, commit)
        if path.startswith(f"/api/models/{repo}/revision/"):
            return json_answer({"error": "Invalid rev id"}, 404, **{"X-Error-Code": "RevisionNotFound"})
        if path.startswith(f"/{repo}/resolve/"):
            return json_answer({"error": "Entry not found"}, 404, **{"X-Error-Code": "EntryNotFound"})
        return json_answer({"error": "Repository not found"}, 404, **{"X-Error-Code": "RepoNotFound"})

    return answer


def _sibling(name: str, content: bytes, hashes: str) -> dict[str, Any]:
    if hashes != "all":
        return {"rfilename": name} | ({"size": len(content)} if hashes == "sizes" else {})
    fields: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": git_blob(content)}
    if is_large(name):
        fields["lfs"] = {"sha256": sha256(content), "size": len(content), "pointerSize": 135}
    return fields


def _entry(name: str, content: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": git_blob(content)}
    if is_large(name):
        fields["lfs"] = {"oid": sha256(content), "size": len(content), "pointerSize": 135}
    return fields


def _file(request: Request, name: str, content: bytes, storage: str | None, commit: str) -> Answer:
    etag = blob_name(name, content)
    own = {"ETag": f'"{etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
    if storage is not None and is_large(name):
        # As the hub does it, with the headers of its newer storage, which a plain download does not need.
        own |= {"Location": f"{storage}/{etag}/{name}?X-Signature=secret", "X-Linked-Size": str(len(content)), "X-Linked-ETag": f'"{etag}"',
                "X-Xet-Hash": "0" * 64, "Link": '<https://xet.example.test/token>; rel="xet-auth"'}  # fmt: skip
        return Answer(302, b"", own)
    reply = ranged(request, content)
    reply.headers |= own
    return reply


def storage_of(files: dict[str, bytes]) -> Callable[[Request], Answer]:
    """The other server, where `hub(storage=...)` sends for large files."""
    named = {f"/{blob_name(name, content)}/{name}": content for name, content in files.items()}

    def answer(request: Request) -> Answer:
        content = named.get(unquote(request.path.partition("?")[0]))
        return Answer(404) if content is None else ranged(request, content)

    return answer
