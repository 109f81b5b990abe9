"""Which HTTP requests get a line in uvicorn's access log."""

from __future__ import annotations

import logging
from collections.abc import Collection


class WithoutPaths(logging.Filter):
    """Drops lines of requests to some paths. uvicorn logs (client, method, path with query, version, status)."""

    def __init__(self, paths: Collection[str]):
        super().__init__()
        self._paths = frozenset(paths)

    def filter(self, record: logging.LogRecord) -> bool:
        args = record.args
        if not isinstance(args, tuple) or len(args) < 3:
            return True
        return str(args[2]).partition("?")[0] not in self._paths
