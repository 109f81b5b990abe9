"""From text to prompt tokens: bounded before the tokenizer runs, off the event loop when long, truncated when asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from headway.errors import ContextLengthError, RequestError
from headway.server.state import ServerState

if TYPE_CHECKING:
    from headway.engine.images.prompt_images import PromptImages

T = TypeVar("T")
LONG_TEXT = 8192  # characters; more is rendered and tokenized off the event loop
_MARGIN = 2  # normalizers shorten some texts a little; a text is refused unread only when it is twice too long


class CutFields(Protocol):
    """How a body says which tokens of a prompt are kept."""

    truncate_prompt_tokens: int | None

    @property
    def truncation_side(self) -> str: ...


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """`text` is what the tokens were made from; None for a prompt given as ids or cut. `images`: those whose tokens are among them."""

    ids: list[int]
    text: str | None
    images: PromptImages | None = None


async def off_loop(characters: int, work: Callable[[], T]) -> T:
    """Run `work` on `characters` of text here, or on another thread when that would hold up other requests."""
    return await asyncio.to_thread(work) if characters >= LONG_TEXT else work()


def prompt_from_text(state: ServerState, text: str, body: CutFields, add_special_tokens: bool) -> PromptTokens:
    """Raises ContextLengthError without tokenizing when the text has far more characters than the context can hold."""
    tokenizer = state.engine.tokenizer
    if len(text) > LONG_TEXT and len(text) > (most := state.engine.max_model_len * _MARGIN * state.pieces.longest):
        if body.truncate_prompt_tokens is None:
            raise ContextLengthError(
                f"This model's maximum context length is {state.engine.max_model_len} tokens. However, your prompt contains "
                f"{len(text)} characters, which make more tokens than that (a token has at most {state.pieces.longest} bytes)",
                param="input_text",
                fix="Shorten the prompt.",
            )
        text = text[-most:] if body.truncation_side == "left" else text[:most]
    return truncated(state, PromptTokens(tokenizer.encode(text, add_special_tokens), text), body)


def truncated(state: ServerState, prompt: PromptTokens, body: CutFields) -> PromptTokens:
    """Cut to `truncate_prompt_tokens`; -1 keeps as much as leaves room for one new token. Raises RequestError."""
    keep = body.truncate_prompt_tokens
    if keep is None:
        return prompt
    most = state.engine.max_model_len
    if keep > most:
        raise RequestError(
            f"truncate_prompt_tokens is {keep}, more than the context length of {most}", param="truncate_prompt_tokens"
        )
    keep = most - 1 if keep == -1 else keep
    if len(prompt.ids) <= keep:
        return prompt
    return PromptTokens(prompt.ids[-keep:] if body.truncation_side == "left" else prompt.ids[:keep], None)
