"""Fake /proc and /sys trees under a folder."""

from __future__ import annotations

from pathlib import Path

V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def v2(root: Path, group: str, files: dict[str, str]) -> Path:
    """A machine with cgroup v2 and this process in `group`; `files` are relative to /sys/fs/cgroup."""
    (root / "sys/fs/cgroup" / group.lstrip("/")).mkdir(parents=True, exist_ok=True)
    return write(root, {"proc/self/cgroup": f"0::{group}\n", "proc/self/mountinfo": V2_MOUNT,
                        **{f"sys/fs/cgroup/{name}": content for name, content in files.items()}})  # fmt: skip


def v1(root: Path, controller: str, group: str, files: dict[str, str], *, visible_root: str = "/") -> Path:
    """A machine with cgroup v1; `files` are relative to the mount of `controller` (mounted together with another)."""
    mount = (
        f"33 31 0:30 {visible_root} /sys/fs/cgroup/{controller} rw,relatime - cgroup cgroup rw,{controller},net_cls\n"
    )
    (root / "sys/fs/cgroup" / controller).mkdir(parents=True, exist_ok=True)
    return write(root, {"proc/self/cgroup": f"5:{controller},net_cls:{group}\n1:name=systemd:/x\n", "proc/self/mountinfo": mount,
                        **{f"sys/fs/cgroup/{controller}/{name}": content for name, content in files.items()}})  # fmt: skip
