"""The prompt of a chat with images: rendered, read, expanded, tokenized, placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headway.errors import RequestError
from headway.models.vision.image_text import IMAGE
from headway.wire.image_parts import ImagePart, image_data, messages_of_parts, refuse_marks

if TYPE_CHECKING:
    from headway.engine.images.prompt_images import PromptImages
    from headway.engine.images.reader import ImageReader


def check_count(reader: ImageReader, images: Sequence[ImagePart]) -> None:
    """Raises RequestError (`too_many_images`)."""
    if len(images) > reader.most_images:
        raise RequestError(
            f"the messages hold {len(images)} images, at most {reader.most_images} may be in one prompt", reason="too_many_images",
            param=images[reader.most_images].place, fix="Send fewer, or raise --limit-mm-per-prompt.",
        )  # fmt: skip


def chat_prompt(
    reader: ImageReader, messages: Sequence[dict[str, Any]], images: Sequence[ImagePart], render: Callable[[], str],
    encode: Callable[[str], list[int]],
) -> tuple[str, list[int], PromptImages]:  # fmt: skip
    """Text, token ids and placed images. `messages` and `images` as `take_images` made them; `render` makes the text of the messages, with a
    mark for each image. Takes long. Raises RequestError, NotBuiltError, QueueFullError, and what the two functions raise."""
    refuse_marks(messages_of_parts(messages), IMAGE)
    text = render()
    tiled = reader.read([(image.place, image_data(image, reader.most_bytes)) for image in images])
    text = reader.expanded(text, tiled)
    ids = encode(text)
    return text, ids, reader.placed(ids, tiled)
