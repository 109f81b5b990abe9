"""`chat_template_kwargs`: variables for the chat template, apart from those that have fields of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import RequestError

_RESERVED = {
    "messages",
    "conversation",
    "tools",
    "documents",
    "chat_template",
    "add_generation_prompt",
    "continue_final_message",
}


def template_variables(given: object) -> Mapping[str, Any]:
    """Raises RequestError for what is no mapping of names and for names that have fields of their own."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise RequestError("chat_template_kwargs must be an object with names as keys", param="chat_template_kwargs")
    taken = _RESERVED & given.keys()
    if taken:
        raise RequestError(f"chat_template_kwargs cannot set {', '.join(sorted(taken))}", param="chat_template_kwargs")
    return given
