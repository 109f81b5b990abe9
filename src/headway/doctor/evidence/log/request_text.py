"""The users' words in a log are no events: they are taken out before any pattern runs."""

from __future__ import annotations

import re
from typing import Final

CUT: Final = "[…]"
"""Stands where words were taken out."""

_NAMES: Final = "prompt|content|input|output|instructions|text|query|reasoning_content"
_QUOTED: Final = r"(?P<quote>['\"])(?:\\.|(?!(?P=quote))[^\\])*+(?P<end>(?P=quote)?)"
# What servers print behind the quoted words. Words that hold a quotation mark themselves end only here.
_AHEAD: Final = r"(?=, (?:params|sampling_params|prompt_token_ids|prompt_embeds_shape|lora_request|output_token_ids|finish_reason|streaming): )"
# (a literal that stands in every line with it, what it looks like). The group `keep` stays.
_BODIES: Final = tuple(
    (sign, re.compile(pattern, re.DOTALL))
    for sign, pattern in (
        ("Received request", rf"(?P<keep>\bReceived request \S+: prompt: )(?P<quote>['\"]).*(?P<end>(?P=quote)){_AHEAD}"),
        ("Generated response", rf"(?P<keep>\bGenerated response \S+(?: \([^)]*\))?: output: )(?P<quote>['\"]).*(?P<end>(?P=quote)){_AHEAD}"),
        # members of a body: as JSON inside a JSON string prints them, as JSON or Python does, as keyword arguments
        (
            '\\"',
            rf"(?P<keep>(?P<escape>\\+)\"(?:{_NAMES})(?P=escape)\"\s?:\s?)(?P<quote>(?P=escape)\")(?:(?!(?<!\\)(?P=quote)).)*+(?P<end>(?:(?P=quote))?)",
        ),
        (":", rf"(?P<keep>(?<!\\)[\"'](?:{_NAMES})[\"']\s?:\s?){_QUOTED}"),
        ("=", rf"(?P<keep>\b(?:{_NAMES})\s?=\s?){_QUOTED}"),
        ("prompt: ", rf"(?P<keep>\bprompt: ){_QUOTED}"),
        ("output: ", rf"(?P<keep>\boutput: ){_QUOTED}"),
        ("body: ", r"(?P<keep>\b(?:[Rr]equest|[Rr]esponse) body: )(?P<quote>)(?P<end>).+"),
        ("payload: ", r"(?P<keep>\b(?:[Rr]equest|[Rr]esponse) payload: )(?P<quote>)(?P<end>).+"),
    )
)
_ANSWERS: Final = ("Generated response", "output: ")
_WORDLESS: Final = re.compile(r"!{8,}|(?:<\|?[a-z_]{1,20}\|?> ?){4,}")
_SIGNS: Final = ("prompt", "content", "Received request", "Generated response", "output", "input", "text", "body: ", "payload: ", "instructions", "query")
_OPENED: Final = re.compile(
    r"(?:\bReceived request \S+: prompt: |\bGenerated response \S+(?: \([^)]*\))?: output: |\b(?:prompt|content|input|text|instructions|query)[\"']?\s?[:=]\s?)"
    r"(?P<quote>['\"])(?:\\.|(?!(?P=quote))[^\\])*+$"
)
_BODY_OPENED: Final = re.compile(r"\b(?:[Rr]equest|[Rr]esponse) (?:body|payload|data): *(?:\{[^}]*|\[[^\]]*)?$")
_CLOSED: Final = re.compile(r"['\"][)}\]]*(?:,|$)|^[)}\]]+,?$")


def without_request_text(text: str) -> str:
    """`text` with a mark instead of prompts and answers."""
    if not any(sign in text for sign in _SIGNS):
        return text
    for sign, body in _BODIES:
        if sign in text:
            text = body.sub(_wordless_kept if sign in _ANSWERS else _cut, text)
    return text


def _cut(found: re.Match[str]) -> str:
    return f"{found['keep']}{found['quote']}{CUT}{found['end']}"


def _wordless_kept(found: re.Match[str]) -> str:
    """An answer of one sign again and again is nobody's words, and the mark of broken numbers."""
    words = found.string[found.end("quote") : found.start("end")]
    return found[0] if _WORDLESS.fullmatch(words) else _cut(found)


def opens_request_text(text: str) -> bool:
    """Whether the users' words begin in this line and do not end in it."""
    return any(sign in text for sign in _SIGNS) and bool(_OPENED.search(text) or _BODY_OPENED.search(text))


def closes_request_text(text: str) -> bool:
    """Whether words that began in a line above may end in this one."""
    return bool(_CLOSED.search(text))
