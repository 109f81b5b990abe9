"""Content as text: what a state, an instruction or a description looks like to a model."""

from __future__ import annotations

import json

from headway.decisions.question import Content, Option


def text_of(content: Content) -> str:
    """Text as it is; anything else as JSON on one line, in the order of its keys, letters unescaped."""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def option_text(option: Option) -> str:
    """`key: description`, or the key alone."""
    return option.key if option.description is None else f"{option.key}: {text_of(option.description)}"
