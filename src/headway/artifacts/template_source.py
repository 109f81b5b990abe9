"""A chat template from the one who starts the server or the engine: a file, or the template itself."""

from __future__ import annotations

from pathlib import Path

from headway.errors import ConfigError


def template_text(given: str | None) -> str | None:
    """One line without braces is taken for a path. Raises ConfigError for a file that cannot be read."""
    if given is None or "\n" in given or "{" in given:
        return given
    try:
        return Path(given).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(
            f"--chat-template {given[:300]!r} cannot be read: {e}",
            reason="chat_template_unreadable",
            param="chat_template",
            fix="Give a readable file or the template itself.",
        ) from e
