"""The log of a router in a file, for `vllm-sr logs`."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

_MOST_BYTES = 10 * 2**20
_KEPT = 3
_LOGGERS = ("headway", "uvicorn")
FILE_NAME = "router.log"


def also_to_file(folder: Path) -> None:
    """What goes to the terminal also goes to the file, in the same format, with keys redacted as there; a few files of 10 MiB are kept."""
    handler = RotatingFileHandler(folder / FILE_NAME, maxBytes=_MOST_BYTES, backupCount=_KEPT, encoding="utf-8", delay=True)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for shown in logger.handlers:
            handler.setFormatter(shown.formatter)
            for each in shown.filters:
                handler.addFilter(each)
        logger.addHandler(handler)
