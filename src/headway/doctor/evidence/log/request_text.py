"""The users' words in a log are no events: they are taken out before any pattern runs."""

from __future__ import annotations

import re
from typing import Final

_SIGNS: Final = ("prompt", "messages", "Received request", "content", "Generated response", "output", "body")
# What servers print around them. Each takes out the quoted text only, so that parameters behind it stay.
_BODIES: Final = (
    re.compile(r"(?P<keep>\bReceived request \S+: prompt: )(?P<quote>['\"])(?:\\.|(?!(?P=quote)).)*(?P=quote)?"),
    re.compile(r"(?P<keep>\bGenerated response \S+(?: \([^)]*\))?: output: )(?P<quote>['\"])(?:\\.|(?!(?P=quote)).)*(?P=quote)?"),
    re.compile(r"(?P<keep>[\"']?\b(?:prompt|content|input|instructions|text)[\"']?\s*[:=]\s*)(?P<quote>['\"])(?:\\.|(?!(?P=quote)).)*(?P=quote)?"),
    re.compile(r"(?P<keep>\b(?:[Rr]equest|[Rr]esponse) body: ).*"),
)


def without_request_text(text: str) -> str:
    """`text` with prompts and answers replaced by nothing between their quotes."""
    if not any(sign in text for sign in _SIGNS):
        return text
    for body in _BODIES:
        text = body.sub(lambda found: found["keep"], text)
    return text
