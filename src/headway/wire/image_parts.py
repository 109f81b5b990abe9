"""Images among the parts of chat messages: where they are, and the bytes in their data URLs. Nothing is fetched."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.errors import NotBuiltError, RequestError
from headway.wire.messages import PART_BORDER, content_parts, read_messages, text_part

_KINDS: Final = ("image_url", "input_image")
_TYPES: Final = ("png", "jpeg", "jpg", "webp", "gif")
_DATA_URL: Final = re.compile(r"data:image/([\w.+-]{1,40});base64,", re.ASCII | re.IGNORECASE)
_OTHERS: Final = ("http://", "https://", "file://")


@dataclass(frozen=True, slots=True)
class ImagePart:
    """`place` names the part in its request."""

    place: str
    url: str


class ImagePlace:
    """Stands in a list of parts where an image was: nothing that a client sends is one."""

    __slots__ = ()


def take_images(messages: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[ImagePart]]:
    """Messages with an ImagePlace for each image, and the images in order. Raises RequestError for an image part without a URL."""
    images: list[ImagePart] = []
    taken: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, list):
            place = f"messages[{number}].content"
            message = {**message, "content": [_taken(part, f"{place}[{i}]", images) for i, part in enumerate(content)]}
        taken.append(message)
    return taken, images


def _taken(part: Any, place: str, images: list[ImagePart]) -> Any:
    if not isinstance(part, Mapping) or part.get("type") not in _KINDS:
        return part
    kind = part["type"]
    given = part.get("image_url")
    url = given.get("url") if isinstance(given, Mapping) else given
    if not isinstance(url, str):
        raise RequestError(f'{place} must be {{"type": "{kind}", "image_url": {{"url": a data URL}}}}', param=place, reason="body_invalid")
    images.append(ImagePart(place, url))
    return ImagePlace()


def messages_of_parts(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As templates of models that read images want them: every content is a list of {"type": "text", "text": ...} and {"type": "image"}.

    Raises RequestError as `plain_messages` does."""
    return read_messages(messages, _as_parts)


def _as_parts(content: Any, where: str) -> list[dict[str, Any]]:
    if content is None or isinstance(content, str):
        return [{"type": "text", "text": content or ""}]
    return [_as_part(part, f"{where}[{i}]") for i, part in enumerate(content_parts(content, where))]


def _as_part(part: Any, where: str) -> dict[str, Any]:
    if isinstance(part, ImagePlace):
        return {"type": "image"}
    if isinstance(part, Mapping) and part.get("type") in _KINDS:
        raise RequestError(f"{where} cannot be read: images are read where a chat is answered", param=where, reason="content_part_unsupported")
    return {"type": "text", "text": text_part(part, where)}


def messages_with_marks(messages: Sequence[dict[str, Any]], mark: str) -> list[dict[str, Any]]:
    """For templates that take texts: every content is one, with `mark` where an image is. Raises RequestError as `plain_messages` does."""

    def as_text(content: Any, where: str) -> str:
        return PART_BORDER.join(mark if part["type"] == "image" else part["text"] for part in _as_parts(content, where))

    return read_messages(messages, as_text)


def refuse_marks(messages: Sequence[dict[str, Any]], mark: str) -> None:
    """Beside images, a text that holds their mark would be taken for one. `messages` are those of `messages_of_parts`.

    Raises RequestError (`image_mark_in_text`)."""
    for number, message in enumerate(messages):
        for i, part in enumerate(message["content"]):
            if mark in part.get("text", ""):
                place = f"messages[{number}].content[{i}]"
                raise RequestError(
                    f"{place} holds {mark}, which stands for an image in this model's prompts", reason="image_mark_in_text", param=place,
                    fix="Write it otherwise where images are in the same chat.",
                )  # fmt: skip


def image_data(image: ImagePart, most_bytes: int) -> bytes:
    """The file in a data URL. Raises RequestError (`image_url_unsupported`, `image_too_large`, `invalid_image`), NotBuiltError for URLs that
    would have to be fetched."""
    place, url = image.place, image.url
    if url[:8].lower().startswith(_OTHERS):
        raise NotBuiltError(
            f"{place}: images are not fetched from {url.split(':', 1)[0].lower()} addresses", param=place,
            fix="Send the image itself: data:image/png;base64,...",
        )  # fmt: skip
    start = _DATA_URL.match(url)
    if start is None or start[1].lower() not in _TYPES:
        found = "no base64 data URL of an image" if start is None else f"of the type image/{start[1]}"
        raise RequestError(
            f"the URL in {place} is {found}; supported: data:image/...;base64,... with png, jpeg, webp or gif", reason="image_url_unsupported",
            param=place,
        )  # fmt: skip
    length = len(url) - start.end()
    if length // 4 * 3 > most_bytes + 3:
        raise RequestError(f"the image in {place} has about {length // 4 * 3} bytes, the limit is {most_bytes}", reason="image_too_large", param=place)
    try:
        data = b64decode(url[start.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(f"the data URL in {place} holds no valid base64", reason="invalid_image", param=place) from None
    if len(data) > most_bytes:
        raise RequestError(f"the image in {place} has {len(data)} bytes, the limit is {most_bytes}", reason="image_too_large", param=place)
    return data
