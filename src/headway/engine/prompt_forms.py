"""The forms in which `LLM` takes prompts: a text, token ids, or a mapping with either."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.images.prompt_images import PromptImages
from headway.errors import NotBuiltError, RequestError

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
        prompt_images(prompt)
        if "prompt_token_ids" in prompt:
            return prompt.get("prompt"), _ids("prompt_token_ids", prompt["prompt_token_ids"])
        if isinstance(prompt.get("prompt"), str):
            return prompt["prompt"], tokenizer.encode(prompt["prompt"])
        raise RequestError(f"a prompt needs 'prompt' or 'prompt_token_ids', got the keys {sorted(map(str, prompt))}", param="prompts")
    if isinstance(prompt, Iterable):
        return None, _ids("prompts", prompt)
    raise RequestError(f"a prompt is a text, a list of token ids or a mapping, got {type(prompt).__name__}", param="prompts")


def prompt_images(prompt: Prompt) -> PromptImages | None:
    """What `LLM.chat` made of its images. Raises NotBuiltError for media in other forms."""
    given = prompt.get("multi_modal_data") if isinstance(prompt, Mapping) else None
    if given is None or isinstance(given, PromptImages):
        return given
    raise NotBuiltError(
        "multi_modal_data is not built", param="multi_modal_data",
        fix='Use LLM.chat with parts such as {"type": "image_url", "image_url": {"url": "data:image/png;base64,..."}}.',
    )  # fmt: skip


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
