"""One file over HTTP into a part file that a later run goes on with."""

from __future__ import annotations

import hashlib
import os
import ssl
import time
from pathlib import Path
from typing import Final

import httpx

from headway.artifacts.progress import ProgressCallback
from headway.errors import ArtifactError

TRIES_WITHOUT_PROGRESS: Final = 4
_TIMEOUT: Final = httpx.Timeout(30.0, connect=15.0)
_CA_VARIABLES: Final = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadFailed(ArtifactError):
    """The server or the way to it failed; another way may work."""

    reason = "download_failed"


def download(url: str, part: Path, *, label: str, sha256: str | None, progress: ProgressCallback | None) -> None:
    """Fetch `url` into `part`, going on where `part` ends. Retries while bytes still come.

    Raises DownloadFailed; `hash_mismatch` as ArtifactError after one fresh try.
    """
    with httpx.Client(verify=_trust(), timeout=_TIMEOUT, follow_redirects=True) as client:
        for attempt in (1, 2):
            _fetch_all(client, url, part, label, progress)
            if sha256 is None or file_sha256(part) == sha256:
                return
            part.unlink()  # A resumed file can be a mixture of two; the second attempt starts from nothing.
            if attempt == 2:
                raise ArtifactError(
                    f"{url} does not have the sha256 that the index promises ({sha256})",
                    reason="hash_mismatch",
                    param=label,
                    fix="Check the mirror or proxy in between.",
                )


def file_sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _trust() -> ssl.SSLContext:
    """The system's certificates and those that the variables of pip, requests and curl name."""
    context = ssl.create_default_context()
    for name in _CA_VARIABLES:
        bundle = os.environ.get(name)
        if bundle and Path(bundle).is_file():
            context.load_verify_locations(bundle)
    return context


def _fetch_all(client: httpx.Client, url: str, part: Path, label: str, progress: ProgressCallback | None) -> None:
    fruitless = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            _fetch_rest(client, url, part, label, progress)
            return
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            if status not in _RETRIED:
                raise DownloadFailed(f"{url} answered {status}", param=label) from None
            problem = f"{url} answered {status}"
        except (httpx.TransportError, httpx.InvalidURL) as error:
            problem = f"{url} failed: {type(error).__name__} {error}"
        after = part.stat().st_size if part.exists() else 0
        fruitless = 0 if after > before else fruitless + 1
        if fruitless >= TRIES_WITHOUT_PROGRESS:
            raise DownloadFailed(
                f"{problem}, {fruitless} times in a row",
                param=label,
                fix="Check the network; a new start goes on from here.",
            )
        time.sleep(0.25 * 2**fruitless)


def _fetch_rest(client: httpx.Client, url: str, part: Path, label: str, progress: ProgressCallback | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    with client.stream("GET", url, headers=headers) as response:
        if (
            response.status_code == 416
        ):  # nothing after `have`: complete, or longer than the file and caught by the hash
            return
        response.raise_for_status()
        resumed = response.status_code == 206 and response.headers.get("content-range", "").startswith(f"bytes {have}-")
        done = have if resumed else 0
        length = response.headers.get("content-length", "")
        total = done + int(length) if length.isdecimal() else None
        with part.open("ab" if resumed else "wb") as file:
            for chunk in response.iter_raw():  # as it arrives: what a cut connection delivered is kept
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(label, done, total)
        if total is not None and done < total:
            raise httpx.RemoteProtocolError(f"{total - done} bytes are missing")
