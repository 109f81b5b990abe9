"""What a container publishes, as an option or inside the command that was given."""

from __future__ import annotations

import re
from typing import Final

_PUBLISHED: Final = r"(?:-p|--publish)[ =](?:[\d.]+:)?(?P<outside>\d+):(?P<inside>\d+)"


def published_in(command: str) -> tuple[int, int] | None:
    """Ports (outside, inside) of the first `-p` of a command."""
    found = re.search(_PUBLISHED, command)
    return (int(found["outside"]), int(found["inside"])) if found else None


def published_as(command: str, outside: int, inside: int) -> str:
    """The command with these ports instead of its own; the option alone when it is no `docker run` with one."""
    option = f"-p {outside}:{inside}"
    if "docker run" in command and re.search(_PUBLISHED, command):
        return re.sub(_PUBLISHED, option, command, count=1)
    return option
