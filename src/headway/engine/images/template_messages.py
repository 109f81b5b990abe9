"""Messages as the chat template of a model that reads images wants them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from headway.artifacts.chat_template import render_chat_template
from headway.errors import RequestError
from headway.models.vision.image_text import IMAGE
from headway.wire.image_parts import messages_of_parts, messages_with_marks

_PROBE: Final = "Parts?"


def template_messages(messages: Sequence[dict[str, Any]], template: str | None) -> list[dict[str, Any]]:
    """`messages` as `take_images` made them. Raises RequestError as `plain_messages` does."""
    return messages_of_parts(messages) if template is None or reads_parts(template) else messages_with_marks(messages, IMAGE)


@lru_cache(maxsize=32)
def reads_parts(template: str) -> bool:
    """Whether a template writes the text of a part and the mark of an image, given a list of parts; most write the list itself, or fail."""
    parts = [{"type": "image"}, {"type": "text", "text": _PROBE}]
    try:
        shown = render_chat_template(
            template, [{"role": "user", "content": parts}], special_tokens={}, add_generation_prompt=True, continue_final_message=False, tools=None,
            documents=None, variables={},
        )  # fmt: skip
    except RequestError:
        return False
    return _PROBE in shown and IMAGE in shown and f"'{_PROBE}'" not in shown
