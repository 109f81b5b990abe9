"""Set up logging once per process, in the format that vLLM users and their tools know.

`(APIServer pid=7) INFO 11-29 15:50:40 [stats_log.py:80] message`; the environment variables are vLLM's.
"""

from __future__ import annotations

import json
import logging
import logging.config
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from headway.errors import ConfigError
from headway.telemetry.log_rate import AtMostEvery
from headway.telemetry.redaction import RedactionFilter, Redactor, redactor_from_environment

_DATE = "%m-%d %H:%M:%S"
_LOGGERS = ("headway", "uvicorn")
_EXPORTER = "opentelemetry"  # complains once per batch while a collector is down
_EXPORTER_SECONDS = 60.0
_STREAMS = {"ext://sys.stdout": "stdout", "ext://sys.stderr": "stderr"}


def configure_logging(
    role: str = "APIServer", *, level: str | None = None, stream: TextIO | None = None, secrets: Iterable[str] = (),
    config_file: str | None = None,
) -> Redactor:
    """Send the logs of headway and uvicorn to `stream`, one line format, keys redacted. May be called again.

    `role` names the process in the prefix. `level` defaults to VLLM_LOGGING_LEVEL (INFO), `stream` to
    VLLM_LOGGING_STREAM (ext://sys.stderr). VLLM_LOGGING_PREFIX is put in front of the level.
    `config_file`, or VLLM_LOGGING_CONFIG_PATH, names a JSON file for logging.config.dictConfig that replaces all of this
    except the redaction; VLLM_CONFIGURE_LOGGING=0 leaves logging alone. `secrets` are keys that must never be shown.

    Returns the redactor, to which more secrets can be added. Raises ConfigError for values that cannot be used.
    """
    redact = redactor_from_environment()
    for secret in secrets:
        redact.add(secret)
    config_path = config_file or os.environ.get("VLLM_LOGGING_CONFIG_PATH")
    if not _switched_on():
        if config_path:
            raise ConfigError(
                "VLLM_LOGGING_CONFIG_PATH is set while VLLM_CONFIGURE_LOGGING is 0", param="VLLM_LOGGING_CONFIG_PATH",
                fix="Unset one of them.",
            )
        return redact
    if config_path:
        _apply_file(Path(config_path), redact)
        return redact
    handler = logging.StreamHandler(stream or _default_stream())
    handler.setFormatter(logging.Formatter(line_format(role), datefmt=_DATE))
    handler.addFilter(RedactionFilter(redact))
    chosen = _level(level)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(chosen)
        logger.propagate = False
    _slow_down_exporter(handler)
    return redact


def _slow_down_exporter(like: logging.StreamHandler[Any]) -> None:
    handler = logging.StreamHandler(like.stream)
    handler.setFormatter(like.formatter)
    handler.filters = [*like.filters, AtMostEvery(_EXPORTER_SECONDS)]
    logger = logging.getLogger(_EXPORTER)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.WARNING)
    logger.propagate = False


def line_format(role: str) -> str:
    """The format string of one line; percent signs in the prefix are kept as they are."""
    prefix = os.environ.get("VLLM_LOGGING_PREFIX", "").replace("%", "%%")
    return f"({role} pid={os.getpid()}) {prefix}%(levelname)s %(asctime)s [%(filename)s:%(lineno)d] %(message)s"


def _switched_on() -> bool:
    value = os.environ.get("VLLM_CONFIGURE_LOGGING", "1")
    if value not in ("0", "1"):
        raise ConfigError(
            f"VLLM_CONFIGURE_LOGGING must be 0 or 1, found {value!r}", param="VLLM_CONFIGURE_LOGGING", fix="Set it to 0 or 1."
        )
    return value == "1"


def _level(level: str | None) -> int:
    name = (level or os.environ.get("VLLM_LOGGING_LEVEL") or "INFO").upper()
    known = logging.getLevelNamesMapping()
    if name not in known:
        raise ConfigError(
            f"{name!r} is not a log level", param="VLLM_LOGGING_LEVEL", fix="Use DEBUG, INFO, WARNING, ERROR or CRITICAL."
        )
    return known[name]


def _default_stream() -> TextIO:
    name = os.environ.get("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    if name not in _STREAMS:
        raise ConfigError(
            f"VLLM_LOGGING_STREAM is {name!r}", param="VLLM_LOGGING_STREAM", fix=f"Use one of {', '.join(_STREAMS)}."
        )
    found: TextIO = getattr(sys, _STREAMS[name])
    return found


def _apply_file(path: Path, redact: Redactor) -> None:
    try:
        config: Any = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise TypeError(f"the file holds a {type(config).__name__}, not an object")
        logging.config.dictConfig(config)
    except (OSError, ValueError, TypeError, AttributeError, ImportError) as error:
        raise ConfigError(
            f"The log configuration {str(path)!r} of VLLM_LOGGING_CONFIG_PATH cannot be used: {error}",
            param="VLLM_LOGGING_CONFIG_PATH",
            fix="It must be a JSON file for Python's logging.config.dictConfig.",
        ) from error
    loggers = [logging.getLogger(), *(logging.getLogger(name) for name in logging.root.manager.loggerDict)]
    for handler in {handler for logger in loggers for handler in logger.handlers}:
        handler.addFilter(RedactionFilter(redact))
