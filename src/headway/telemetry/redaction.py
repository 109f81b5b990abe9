"""Keep keys out of the log: what looks like one, and what is known to be one, is replaced by ***."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable

_MASK = "***"
_SHORTEST_SECRET = 6  # a shorter "key" would blank ordinary words
_SECRET_VARIABLES = ("VLLM_API_KEY", "HEADWAY_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")

_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{4,}"), r"\1 " + _MASK),
    (re.compile(r"\bhf_[A-Za-z0-9]{16,}"), "hf_" + _MASK),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"), "sk-" + _MASK),
    (re.compile(r"(?i)(--(?:api-key|hf-token|token|password)[=\s]\s*[\"']?)[^\s\"']{4,}"), r"\1" + _MASK),
    # api_key=VALUE, "hf_token": "VALUE", api_key=['VALUE'], ?token=VALUE
    (
        re.compile(
            r"(?i)((?:api[-_]?key|hf[-_]?token|access[-_]?token|[?&]token|password)[\"']?\s*[:=]\s*[\[(]?\s*[\"']?)"
            r"(?!None\b|null\b|\*)[^\s\"',;&\])]{4,}"
        ),
        r"\1" + _MASK,
    ),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/@]+@"), r"\1:" + _MASK + "@"),
)


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
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


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
