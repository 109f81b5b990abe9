"""How many connections fit the files that this process may open."""

from __future__ import annotations

import logging
import resource

_log = logging.getLogger(__name__)
_RESERVE = 128  # for models, logs and the process's own sockets
_ENOUGH = 65536


def connection_limit(asked: int) -> int:
    """`asked`, or as many as the process may have when that is 0. Raises the soft limit of open files as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(_ENOUGH if hard == resource.RLIM_INFINITY else hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    room = (_ENOUGH if soft == resource.RLIM_INFINITY else min(soft, _ENOUGH)) - _RESERVE
    if asked > room:
        _log.warning("--max-connections %d is more than the limit of open files allows (ulimit -n): %d are taken", asked, room)
    return max(1, min(asked or room, room))
