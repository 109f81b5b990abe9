"""The `usage` object."""

from __future__ import annotations

from typing_extensions import TypedDict


class PromptTokensDetails(TypedDict):
    cached_tokens: int


class Usage(TypedDict):
    """Counts of tokens; the prompt of a request counts once, however many choices were asked for."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int
    prompt_tokens_details: PromptTokensDetails | None
    completion_tokens_details: None


def usage(prompt: int, completion: int, cached: int | None) -> Usage:
    """`cached` is None when the server does not tell cache hits."""
    details: PromptTokensDetails | None = None if cached is None else {"cached_tokens": cached}
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": details,
        "completion_tokens_details": None,
    }


def usage_json(prompt: int, completion: int, cached: int | None) -> bytes:
    """The same for a stream chunk, where unset fields are left out. Built by hand: it may be sent with every token."""
    text = f'{{"prompt_tokens":{prompt},"total_tokens":{prompt + completion},"completion_tokens":{completion}'
    return (text + ("}" if cached is None else f',"prompt_tokens_details":{{"cached_tokens":{cached}}}}}')).encode()
