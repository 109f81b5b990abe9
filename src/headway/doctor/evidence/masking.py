"""Secrets are masked when evidence is collected, so that no later step can print them."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "[masked]"

_SECRET_NAME: Final = r"[A-Za-z0-9_.-]*(?:api[_-]?keys?|token|secret|passw(?:or)?d|credentials?|private[_-]?key)"
_RULES: Final = (
    # Authorization: Bearer xyz, also in JSON and curl -H
    re.compile(r"(?i)(authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)?\s*)([^\s\"',}]+)"),
    re.compile(r"(?i)(\bbearer\s+)([A-Za-z0-9._~+/=-]{6,})"),
    # scheme://user:password@host
    re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)([^\s/@]+)(?=@)"),
    # name=value, name: value, --api-key value, "name": "value"
    re.compile(rf"(?i)(\b{_SECRET_NAME}[\"']?\s*[=:]\s*[\[\"']*)([^\s\"',}}\]]{{3,}})"),
    re.compile(r"(?i)(--(?:api-key|token|hf-token|password|ssl-keyfile-password)[ =][\"']?)([^\s\"']{3,})"),
    # well-known shapes, wherever they stand
    re.compile(r"()\b((?:sk|hf|pk|ghp|gho|glpat|xox[abp]|nvapi|AKIA)[_-]?[A-Za-z0-9_-]{12,})"),
)
# words that follow `token:` and the like in ordinary log text and are no secrets
_PLAIN: Final = re.compile(r"(?i)^(?:none|null|true|false|\d+(?:\.\d+)?|\*+|\[masked\]|set|unset|yes|no)$")


def mask(text: str) -> str:
    """`text` with the values of keys, tokens and passwords replaced."""
    for rule in _RULES:
        text = rule.sub(lambda found: found[0] if _PLAIN.match(found[2]) else found[1] + MASK, text)
    return text
