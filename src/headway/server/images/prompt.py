"""The prompt of a chat whose messages hold images: decoded, cut and tokenized off the event loop, one request after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from headway.engine.images.chat_prompt import chat_prompt, check_count
from headway.errors import RequestError
from headway.server.chat_prompt import rendered
from headway.server.prompt_tokens import PromptTokens, prompt_from_text
from headway.server.state import ServerState
from headway.wire.chat import ChatBody
from headway.wire.image_parts import ImagePart

if TYPE_CHECKING:
    from headway.engine.images.reader import ImageReader


async def prompt_with_images(
    state: ServerState, reader: ImageReader, body: ChatBody, messages: Sequence[dict[str, Any]], images: Sequence[ImagePart], with_tools: bool
) -> PromptTokens:
    """`messages` and `images` as `take_images` made them. Raises RequestError, NotBuiltError, QueueFullError."""
    check_count(reader, images)
    if body.truncate_prompt_tokens is not None:
        raise RequestError("truncate_prompt_tokens could cut through an image", param="truncate_prompt_tokens", fix="Leave it out.")
    if body.use_beam_search:
        raise RequestError("use_beam_search does not read images", param="use_beam_search", fix="Leave one of the two out.")

    def work() -> PromptTokens:
        def render() -> str:
            return rendered(state, messages, body, with_tools)

        def encode(text: str) -> list[int]:
            return prompt_from_text(state, text, body, body.add_special_tokens).ids

        text, ids, placed = chat_prompt(reader, messages, images, render, encode)
        return PromptTokens(ids, text, placed)

    # In the context of this request: it tells which engine the request began with.
    return await asyncio.get_running_loop().run_in_executor(reader.thread, copy_context().run, work)
