"""Secrets are masked when evidence is collected, so that no later step can print them."""

from __future__ import annotations

from typing import Final

from headway.telemetry.secret_text import names_a_secret as names_a_secret
from headway.telemetry.secret_text import without_secrets

MASK: Final = "[masked]"


def mask(text: str) -> str:
    """`text` with the values of keys, tokens and passwords replaced."""
    return without_secrets(text, MASK)
