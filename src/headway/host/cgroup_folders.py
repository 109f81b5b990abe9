"""Which cgroup folders limit this process, from its own group up to the top one that can be seen. Versions 1 and 2.

Functions take the root of a file system, "/" in real life, so that tests can build one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class CgroupFolder:
    """`version` tells which file names are in `path`."""

    version: int
    path: Path


@dataclass(frozen=True, slots=True)
class _Mount:
    version: int
    controllers: frozenset[str]  # empty for version 2, where one tree has them all
    root: str  # the part of the hierarchy that is visible at `point`
    point: str


def cgroup_folders(controller: str, root: Path = Path("/"), process: str = "self") -> list[CgroupFolder]:
    """Folders of `controller` ("cpu", "memory"), own group first; a limit of any of them holds. Empty without cgroups.

    `process`: a process id of this machine, or "self".
    """
    groups = _groups(root / "proc" / process / "cgroup")
    found: list[CgroupFolder] = []
    for mount in _mounts(root):
        name = controller if mount.version == 1 else ""
        if (mount.version == 1 and controller not in mount.controllers) or name not in groups:
            continue
        top = root / mount.point.lstrip("/")
        found += [CgroupFolder(mount.version, folder) for folder in _chain(top, mount.root, groups[name])]
    return found


def _chain(top: Path, visible_root: str, group: str) -> list[Path]:
    """`group` below `top` and every parent up to `top`. Inside a container the group's path can lie outside what is
    mounted; then `top` is the group's own folder or the nearest one there is."""
    own = PurePosixPath(group)
    if visible_root not in ("", "/") and own.is_relative_to(visible_root):
        own = PurePosixPath("/") / own.relative_to(visible_root)
    if ".." in own.parts:
        return [top]
    folders = [top / parent.as_posix().lstrip("/") for parent in (own, *own.parents)]
    return [folder for folder in folders if folder.is_dir()] or [top]


def _groups(file: Path) -> dict[str, str]:
    """Controller -> path of the group that the process is in; "" for version 2."""
    groups: dict[str, str] = {}
    for line in _lines(file):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not number.isdecimal() or not path.startswith("/"):
            continue
        for name in controllers.split(","):
            groups[name] = path
    return groups


def _mounts(root: Path) -> list[_Mount]:
    """Cgroup mounts of /proc/self/mountinfo; fields as in proc(5): 3 root, 4 mount point, after "-" type and options."""
    mounts: list[_Mount] = []
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, tail = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(tail) < 3 or tail[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if tail[0] == "cgroup2" else 1
        controllers = frozenset() if version == 2 else frozenset(tail[2].split(","))
        mounts.append(_Mount(version, controllers, _unescape(fields[3]), _unescape(fields[4])))
    return mounts


def _unescape(field: str) -> str:
    return field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def read_word(path: Path) -> str | None:
    """The stripped text of a small kernel file, or None when it cannot be read."""
    lines = _lines(path)
    return lines[0].strip() if lines else None


def read_count(path: Path) -> int | None:
    """The non-negative whole number in a kernel file; None when there is none ("max", "-1", no file)."""
    word = read_word(path)
    return int(word) if word is not None and word.isdecimal() else None
