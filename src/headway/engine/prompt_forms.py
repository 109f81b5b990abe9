"""The forms in which `LLM` takes prompts: a text, token ids, or a mapping with either."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex

from headway.artifacts.tokenizer import Tokenizer
from headway.errors import RequestError

Prompt = str | Sequence[SupportsIndex] | Mapping[str, Any]


def prompt_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt or many as a list; a flat list of ids is one prompt."""
    if isinstance(prompts, str | Mapping):
        return [prompts]
    items = checked_list("prompts", prompts, object)
    return [items] if items and _whole(items[0]) is not None else items


def checked_list(param: str, value: object, *kinds: type) -> list[Any]:
    """`value` as a list. Raises RequestError unless it is a sequence (not a text) of instances of `kinds`."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise RequestError(f"{param} must be a list, got {type(value).__name__}", param=param)
    items = list(value)
    for i, item in enumerate(items):
        if not isinstance(item, kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise RequestError(f"{param}[{i}] must be of type {names}, got {type(item).__name__}", param=param)
    return items


def prompt_tokens(prompt: Prompt, tokenizer: Tokenizer) -> tuple[str | None, list[int]]:
    """Text, if there is one, and token ids. Ids may be any integers, also those of numpy. Raises RequestError."""
    if isinstance(prompt, str):
        return prompt, tokenizer.encode(prompt)
    if isinstance(prompt, Mapping):
        if "prompt_token_ids" in prompt:
            return prompt.get("prompt"), _ids("prompt_token_ids", prompt["prompt_token_ids"])
        if isinstance(prompt.get("prompt"), str):
            return prompt["prompt"], tokenizer.encode(prompt["prompt"])
        raise RequestError(f"a prompt needs 'prompt' or 'prompt_token_ids', got the keys {sorted(map(str, prompt))}", param="prompts")
    if isinstance(prompt, Iterable):
        return None, _ids("prompts", prompt)
    raise RequestError(f"a prompt is a text, a list of token ids or a mapping, got {type(prompt).__name__}", param="prompts")


def _ids(param: str, value: object) -> list[int]:
    ids = []
    for i, item in enumerate(checked_list(param, value, object)):
        token = _whole(item)
        if token is None:
            raise RequestError(f"{param}[{i}] must be of type int, got {type(item).__name__}", param=param)
        ids.append(token)
    return ids


def _whole(item: object) -> int | None:
    """`item` as an int, if it is an integer of any kind; a bool is none, nor is an array."""
    if isinstance(item, bool):
        return None
    try:
        return operator.index(item)  # type: ignore[arg-type]
    except TypeError:
        return None
