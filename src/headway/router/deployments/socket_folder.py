"""The private folder in which managed workers have their sockets and models files."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

from headway.errors import ConfigError

LONGEST_SOCKET_PATH = 100
"""In bytes: sun_path ends at 104 to 108, depending on the system."""


def private_folder(folder: Path | None) -> Path:
    """`folder` (VLLM_SRUN_DIR) made with mode 0700, or a new one. Raises ConfigError for a symbolic link, a file, or somebody else's folder."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="vllm-srun-"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise _wrong(f"cannot be used: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise _wrong("must be a folder, not a symbolic link or a file")
    if found.st_uid != os.getuid():
        raise _wrong("belongs to another user")
    folder.chmod(0o700)
    return folder


def short_enough(folder: Path, name: str) -> Path:
    """`folder`, or a new one under the temporary folder when sockets in it would have too long a path."""
    if len(os.fsencode(folder / name)) <= LONGEST_SOCKET_PATH:
        return folder
    return Path(tempfile.mkdtemp(prefix="srun-"))


def clear_socket(path: Path) -> None:
    """Remove a socket that an earlier worker left. Raises ConfigError when something else lies there, or a worker still listens."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigError(f"{path} is in the way of a worker's socket and is none itself", reason="socket_invalid", fix="Remove it.")
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(str(path)) == 0:
            raise ConfigError(f"another worker listens on {path}", reason="socket_invalid", fix="Give each router a VLLM_SRUN_DIR of its own.")
    path.unlink()


def write_private(path: Path, content: bytes) -> None:
    """Mode 0600 from the beginning; replaces what is there."""
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    beside.replace(path)


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"VLLM_SRUN_DIR {what}", reason="runtime_folder_invalid", param="VLLM_SRUN_DIR")
