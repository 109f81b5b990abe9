"""One file over HTTP into a part file that a later run goes on with."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from headway.artifacts.progress import ProgressCallback
from headway.errors import ArtifactError

TRIES_WITHOUT_PROGRESS: Final = 4
MAX_WAIT_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 15
SILENCE_SECONDS: Final = 30  # between two chunks; a slow download may take as long as it likes
RETRIED_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_CA_VARIABLES: Final = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")

_PASSWORD: Final = re.compile(r"(?<=:)//[^/@]*@")

Refusal = Callable[[int, Mapping[str, str], str], ArtifactError]  # status, headers, URL after redirects -> error


def shown_url(url: httpx.URL | str) -> str:
    """A URL for messages and logs: without its query, where links to storage carry their signature, and without a password."""
    return _PASSWORD.sub("//", str(url).partition("?")[0])


class _WithoutQuery(logging.Filter):
    """The log lines of the HTTP library with URLs as `shown_url` shows them."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(shown_url(each) if isinstance(each, httpx.URL) else each for each in record.args)
        return True


logging.getLogger("httpx").addFilter(_WithoutQuery())


class DownloadFailed(ArtifactError):
    """The server or the way to it failed; another way may work."""

    reason = "download_failed"


@dataclass(frozen=True, slots=True)
class Promised:
    """What the finished file must be; None where nobody promised anything. `git_blob` is the id that git gives its content."""

    nbytes: int | None = None
    sha256: str | None = None
    git_blob: str | None = None

    def broken_by(self, path: Path) -> str | None:
        """How `path` differs, as a phrase after "found", or None."""
        size = path.stat().st_size
        if self.nbytes is not None and size != self.nbytes:
            return f"{size} bytes"
        for wanted, digest, prefix in (
            (self.sha256, "sha256", b""),
            (self.git_blob, "sha1", b"blob %d\0" % size),
        ):
            if wanted is not None and (found := _digest(path, digest, prefix)) != wanted:
                return f"{digest} {found}"
        return None

    def __str__(self) -> str:
        parts = (
            None if self.nbytes is None else f"{self.nbytes} bytes",
            None if self.sha256 is None else f"sha256 {self.sha256}",
            None if self.git_blob is None else f"git blob {self.git_blob}",
        )
        return ", ".join(part for part in parts if part is not None) or "nothing"


def http_client(headers: Mapping[str, str] | None = None, *, silence: int | None = None) -> httpx.Client:
    """A client that trusts what pip, requests and curl are told to trust. `Authorization` is not sent on to other hosts.

    After `silence` seconds without a byte (SILENCE_SECONDS by default) a connection is given up.
    """
    timeout = httpx.Timeout(silence or SILENCE_SECONDS, connect=CONNECT_SECONDS)
    return httpx.Client(verify=_trust(), timeout=timeout, follow_redirects=True, headers=headers)


def download(
    client: httpx.Client,
    url: str,
    part: Path,
    promised: Promised,
    *,
    label: str,
    progress: ProgressCallback | None,
    refusal: Refusal | None = None,
) -> None:
    """Fetch `url` into `part`, going on where `part` ends. Retries while bytes still come.

    `refusal` turns a final HTTP status into the error to raise. Raises DownloadFailed; `hash_mismatch` as ArtifactError
    after one fresh try; OSError when `part` cannot be written, which keeps what is there.
    """
    for attempt in (1, 2):
        _fetch_all(client, url, part, promised.nbytes, label, progress, refusal or _refused)
        broken = promised.broken_by(part)
        if broken is None:
            return
        part.unlink()  # A resumed file can be a mixture of two; the second attempt starts from nothing.
        if attempt == 2:
            raise ArtifactError(
                f"{shown_url(url)} is not the file that was promised: expected {promised}, found {broken}, twice",
                reason="hash_mismatch",
                param=label,
                fix="Check the mirror or proxy in between.",
            )


def file_sha256(path: Path) -> str:
    """Hex digest of a file."""
    return _digest(path, "sha256", b"")


def wait(stated: str | None, tries: int) -> None:
    """Wait before the next try: as `Retry-After` states in seconds, else 0.5, 1, 2, ... s; at most 30 s."""
    seconds = float(stated) if stated is not None and stated.strip().isdecimal() else 0.25 * 2.0**tries
    time.sleep(min(MAX_WAIT_SECONDS, seconds))


def _digest(path: Path, name: str, prefix: bytes) -> str:
    digest = hashlib.new(name, prefix, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


def _trust() -> ssl.SSLContext:
    """The system's certificates and those that the variables of pip, requests and curl name."""
    context = ssl.create_default_context()
    for name in _CA_VARIABLES:
        bundle = os.environ.get(name)
        if bundle and Path(bundle).is_file():
            context.load_verify_locations(bundle)
    return context


def _refused(status: int, headers: Mapping[str, str], url: str) -> ArtifactError:
    return DownloadFailed(f"{shown_url(url)} answered {status}")


def _fetch_all(
    client: httpx.Client,
    url: str,
    part: Path,
    nbytes: int | None,
    label: str,
    progress: ProgressCallback | None,
    refusal: Refusal,
) -> None:
    fruitless = 0
    while True:
        before = _size(part)
        stated: str | None = None
        try:
            _fetch_rest(client, url, part, nbytes, label, progress)
            return
        except httpx.HTTPStatusError as error:
            answer = error.response
            failure = refusal(answer.status_code, answer.headers, str(answer.url))
            if answer.status_code not in RETRIED_STATUSES:
                raise failure from None
            stated = answer.headers.get("retry-after")
        except (httpx.TransportError, httpx.InvalidURL) as error:
            failure = DownloadFailed(
                f"{shown_url(url)} failed {TRIES_WITHOUT_PROGRESS} times in a row: {type(error).__name__} {error}",
                param=label,
                fix="Check the network; a new start goes on from here.",
            )
        fruitless = 0 if _size(part) > before else fruitless + 1
        if fruitless >= TRIES_WITHOUT_PROGRESS:
            raise failure
        wait(stated, fruitless)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _fetch_rest(
    client: httpx.Client, url: str, part: Path, nbytes: int | None, label: str, progress: ProgressCallback | None
) -> None:
    have = _size(part)
    if nbytes is not None and have >= nbytes:  # complete, or longer and caught by the check of what was promised
        part.touch()  # an empty file is complete before it is there
        return
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == 416:  # nothing after `have`: as above
            return
        response.raise_for_status()
        resumed = response.status_code == 206 and response.headers.get("content-range", "").startswith(f"bytes {have}-")
        done = have if resumed else 0
        length = response.headers.get("content-length", "")
        total = done + int(length) if length.isdecimal() else nbytes
        with part.open("ab" if resumed else "wb") as file:
            for chunk in response.iter_raw():  # as it arrives: what a cut connection delivered is kept
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(label, done, total)
                if nbytes is not None and done > nbytes:  # more than promised: no reason to fill the disk with it
                    return
        if total is not None and done < total:
            raise httpx.RemoteProtocolError(f"{total - done} bytes are missing")
