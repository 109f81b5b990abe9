"""Keep keys out of the log: what looks like one, and what is known to be one, is replaced by ***."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

from headway.telemetry.secret_text import without_secrets

_MASK = "***"
_SHORTEST_SECRET = 6  # a shorter "key" would blank ordinary words
_SECRET_VARIABLES = ("VLLM_API_KEY", "HEADWAY_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


class Redactor:
    """Replaces secrets in text. `known` are secrets of any shape, such as the values of --api-key."""

    def __init__(self, known: Iterable[str] = ()):
        self._known: list[str] = []
        for secret in known:
            self.add(secret)

    def add(self, secret: str | None) -> None:
        """Never show `secret` again; ignored when shorter than 6 characters."""
        if secret and len(secret) >= _SHORTEST_SECRET and secret not in self._known:
            self._known.append(secret)
            self._known.sort(key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, _MASK)
        return without_secrets(text, _MASK)


def redactor_from_environment() -> Redactor:
    """A redactor that knows the keys and tokens in the environment."""
    return Redactor(value for name in _SECRET_VARIABLES if (value := os.environ.get(name)))


class RedactionFilter(logging.Filter):
    """Redacts message and traceback of every record that passes; drops none."""

    _plain = logging.Formatter()

    def __init__(self, redact: Redactor):
        super().__init__()
        self.redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.redact(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = self.redact(record.exc_text or self._plain.formatException(record.exc_info))
        if record.stack_info:
            record.stack_info = self.redact(record.stack_info)
        return True
