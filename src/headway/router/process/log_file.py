"""The log of a router in a file, for `vllm-sr logs`."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from headway.router.generation.reload import FILE_ONLY

_MOST_BYTES = 10 * 2**20
_KEPT = 3
_LOGGERS = ("headway", "uvicorn")
FILE_NAME = "router.log"


def _for_the_terminal(record: logging.LogRecord) -> bool:
    return not getattr(record, FILE_ONLY, False)


def also_to_file(folder: Path) -> None:
    """What goes to the terminal also goes to the file, and what the program says itself when it ends to the file alone, in the same format, with keys redacted as there; a few files of 10 MiB are kept."""
    handler = RotatingFileHandler(folder / FILE_NAME, maxBytes=_MOST_BYTES, backupCount=_KEPT, encoding="utf-8", delay=True)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for shown in logger.handlers:
            if not isinstance(shown, RotatingFileHandler):
                shown.addFilter(_for_the_terminal)
            handler.setFormatter(shown.formatter)
            for each in shown.filters:
                if each is not _for_the_terminal:
                    handler.addFilter(each)
        logger.addHandler(handler)
