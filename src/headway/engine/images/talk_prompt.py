"""A conversation as a prompt that `LLM.generate` takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.images.chat_prompt import chat_prompt, check_count
from headway.engine.images.template_messages import template_messages
from headway.wire.image_parts import take_images
from headway.wire.messages import plain_messages

if TYPE_CHECKING:
    from headway.engine.images.reader import ImageReader


def talk_prompt(
    reader: ImageReader | None, tokenizer: Tokenizer, messages: Sequence[dict[str, Any]], *, chat_template: str | None, **settings: Any
) -> dict[str, Any]:
    """`reader`: of a model that reads images; `settings` are those of `Tokenizer.render_chat`. Raises RequestError."""
    encode = partial(tokenizer.encode, add_special_tokens=False)
    if reader is None:
        text = tokenizer.render_chat(plain_messages(messages), chat_template=chat_template, **settings)
        return {"prompt": text, "prompt_token_ids": encode(text)}
    taken, images = take_images(messages)
    template = tokenizer.chat_template if chat_template is None else tokenizer.chat_templates.get(chat_template, chat_template)
    render = partial(tokenizer.render_chat, template_messages(taken, template), chat_template=chat_template, **settings)
    if not images:
        text = render()
        return {"prompt": text, "prompt_token_ids": encode(text)}
    check_count(reader, images)
    text, ids, placed = chat_prompt(reader, taken, images, render, encode)
    return {"prompt": text, "prompt_token_ids": ids, "multi_modal_data": placed}
