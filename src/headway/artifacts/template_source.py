"""A chat template from the one who starts the server or the engine: a file, or the template itself."""

from __future__ import annotations

from pathlib import Path

from headway.artifacts.chat_template import compile_chat_template
from headway.errors import ConfigError, RequestError


def template_text(given: str | None) -> str | None:
    """One line without braces is taken for a path. Raises ConfigError for a file that cannot be read, and for a template that
    cannot be compiled: every conversation would be refused because of it."""
    if given is None:
        return None
    text = given if "\n" in given or "{" in given else _read(given)
    try:
        compile_chat_template(text)
    except RequestError as error:
        place = "" if text is given else f" {given[:300]!r}"
        raise _unreadable(f"--chat-template{place}: {error.message}", "Correct the template.") from None
    return text


def _read(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise _unreadable(
            f"--chat-template {path[:300]!r} cannot be read: {e}", "Give a readable file or the template itself."
        ) from e


def _unreadable(message: str, fix: str) -> ConfigError:
    return ConfigError(message, reason="chat_template_unreadable", param="chat_template", fix=fix)
