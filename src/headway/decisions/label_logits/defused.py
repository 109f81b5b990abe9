"""Text of users, in which nothing is a special token."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from headway.artifacts.tokenizer import Tokenizer

_JOINT: Final = "\u200b"  # a space without width: the text reads as before, and its tokens are other ones
_MARKER_STARTS: Final = ("<", "[")


def defuser(tokenizer: Tokenizer) -> Callable[[str], str]:
    """A function that breaks up every added token that is spelled out in a text: special ones, and those that look like a
    marker (`<think>`), which templates give a meaning though they are not special."""
    added = tokenizer.backend.get_added_tokens_decoder().values()
    texts = {token.content.strip() for token in added if token.special or token.content.strip().startswith(_MARKER_STARTS)}
    texts.discard("")
    if not texts:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True)))

    def defused(text: str) -> str:
        while pattern.search(text):  # breaking one up may complete another
            text = pattern.sub(lambda found: _broken(found[0]), text)
        return text

    return defused


def _broken(text: str) -> str:
    return _JOINT if len(text) == 1 else text[0] + _JOINT + text[1:]
