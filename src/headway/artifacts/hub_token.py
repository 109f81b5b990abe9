"""The hub token of this process and where it came from. Messages name the place and never the value."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import Final

from headway.errors import ArtifactError

logger = logging.getLogger(__name__)
# In the order in which huggingface_hub looks.
TOKEN_VARIABLES: Final = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
# Names of other tools, which the hub's own programs do not read.
FOREIGN_VARIABLES: Final = ("HUGGINGFACE_TOKEN", "HUGGINGFACEHUB_API_TOKEN", "HF_API_TOKEN", "HF_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """`source` names the variable or file it came from. `misplaced` is a variable that looks like one but is not read."""

    value: str | None = field(repr=False)
    source: str | None
    misplaced: str | None = None

    def described(self) -> str:
        """A clause for error messages."""
        if self.source is not None:
            return f"the token from {self.source} was sent"
        hint = f"; {self.misplaced} is set, but is not the name of a hub token: use HF_TOKEN" if self.misplaced else ""
        return f"no token was found (looked at {', '.join(TOKEN_VARIABLES)}, HF_TOKEN_PATH, `hf auth login`){hint}"


def find_token() -> Token:
    """The token that huggingface_hub would take; white space around it is cut off with a warning.

    Raises ArtifactError (`hub_token_malformed`) when it holds characters that no header can carry.
    """
    for name in TOKEN_VARIABLES:
        raw = os.environ.get(name)
        if raw and raw.strip():
            if raw != raw.strip():
                logger.warning("The token in %s has white space around it, which was cut off.", name)
            return Token(_checked(raw.strip(), name), name)
    from huggingface_hub import get_token

    value = get_token()
    if value:
        source = "the file that HF_TOKEN_PATH names" if os.environ.get("HF_TOKEN_PATH") else "the file of `hf auth login`"
        return Token(_checked(value, source), source)
    return Token(None, None, next((name for name in FOREIGN_VARIABLES if os.environ.get(name)), None))


def _checked(value: str, source: str) -> str:
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ArtifactError(
            f"the token from {source} holds white space or characters that are not ASCII ({len(value)} characters in all)",
            reason="hub_token_malformed",
            param="token",
            fix="Copy it again: a token is one word that starts with hf_.",
        )
    return value
