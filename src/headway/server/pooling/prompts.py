"""From the texts, ids or messages of a body to prompts: bounded, tokenized off the event loop when long, cut when asked."""

from __future__ import annotations

from collections.abc import Sequence

from headway.server.chat_prompt import effort, rendered
from headway.server.prompt_tokens import PromptTokens, off_loop, prompt_from_text, truncated
from headway.server.state import ServerState
from headway.wire.pooling.input_body import InputBody
from headway.wire.pooling.reading_body import ReadingBody


async def input_prompts(state: ServerState, body: InputBody) -> list[PromptTokens]:
    """One for each input; messages are one. Raises RequestError, ContextLengthError."""
    messages = body.messages
    if messages is None:
        return await text_prompts(state, body.input or [], body)
    text = await off_loop(effort(messages, body), lambda: rendered(state, messages, body, with_tools=True))
    return [await off_loop(len(text), lambda: prompt_from_text(state, text, body, add_special_tokens=False))]


async def text_prompts(state: ServerState, inputs: Sequence[str | list[int]], body: ReadingBody) -> list[PromptTokens]:
    """Token ids are taken as they are. Raises ContextLengthError."""

    def tokens(given: str | list[int]) -> PromptTokens:
        if isinstance(given, str):
            return prompt_from_text(state, given, body, body.add_special_tokens)
        return truncated(state, PromptTokens(given, None), body)

    characters = sum(len(given) for given in inputs if isinstance(given, str))
    return await off_loop(characters, lambda: [tokens(given) for given in inputs])
