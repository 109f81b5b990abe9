"""Content blocks of Messages as messages of chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from headway.errors import RequestError
from headway.wire.losses import LossNotes

Message = dict[str, Any]
_DROPPED = ("thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "container_upload")


def system_text(system: Any, losses: LossNotes) -> str:
    """Raises RequestError."""
    if system is None or isinstance(system, str):
        return system or ""
    return "\n\n".join(_text_of(block, f"system[{at}]", losses) for at, block in enumerate(_blocks(system, "system")))


def chat_messages(messages: Any, losses: LossNotes, origins: dict[str, str] | None = None, before: int = 0) -> list[Message]:
    """Raises RequestError naming the block.

    `origins` is given what the paths of the chat are called in the request, where `before` messages precede these.
    """
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages must be a list with at least one message", param="messages")
    found: list[Message] = []
    origins = {} if origins is None else origins
    for at, message in enumerate(messages):
        place = f"messages[{at}]"
        if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant", "system"):
            raise RequestError(f"{place} must be an object whose role is user or assistant", param=place)
        role, content = message["role"], message.get("content")
        target = f"messages[{before + len(found)}]"
        if isinstance(content, str):
            found.append({"role": role, "content": content})
        elif role == "assistant":
            blocks = _blocks(content, place)
            found.append(_assistant(blocks, place, losses))
            calls = (number for number, block in enumerate(blocks) if block.get("type") == "tool_use")
            origins |= {f"{target}.tool_calls[{i}].function.arguments": f"{place}.content[{number}].input" for i, number in enumerate(calls)}
        elif role == "system":
            found.append({"role": role, "content": system_text(content, losses)})
        else:
            places: list[str] = []
            found += _user(_blocks(content, place), place, losses, places)
            target = f"messages[{before + len(found) - 1}]"
            origins |= {f"{target}.content[{i}]": part for i, part in enumerate(places)}
    return found


def _assistant(blocks: Sequence[Mapping[str, Any]], place: str, losses: LossNotes) -> Message:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for at, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "text":
            texts.append(_text_of(block, f"{place}.content[{at}]", losses))
        elif kind == "tool_use":
            arguments = orjson.dumps(block.get("input") or {}).decode()
            calls.append({"id": str(block.get("id")), "type": "function", "function": {"name": str(block.get("name")), "arguments": arguments}})
        elif kind in _DROPPED:
            losses.note(f"{kind}", severity="info")
        else:
            raise _unknown(kind, f"{place}.content[{at}]")
    message: Message = {"role": "assistant", "content": "".join(texts) if texts or not calls else None}
    if calls:
        message["tool_calls"] = calls
    return message


def _user(blocks: Sequence[Mapping[str, Any]], place: str, losses: LossNotes, places: list[str]) -> Iterator[Message]:
    """Results of tools first, each a message, then the rest as one; images in results go to the rest, since tool messages hold text alone.

    `places` is given the block that each part of the rest comes from.
    """
    parts: list[dict[str, Any]] = []
    for at, block in enumerate(blocks):
        where = f"{place}.content[{at}]"
        if block.get("type") != "tool_result":
            parts.append(_part(block, where, losses))
            places.append(where)
            continue
        texts, images = _result(block, where, losses)
        parts += images
        places += [where] * len(images)
        yield {"role": "tool", "tool_call_id": str(block.get("tool_use_id")), "content": "\n".join(texts)}
    if parts:
        only_text = len(parts) == 1 and parts[0]["type"] == "text"
        yield {"role": "user", "content": parts[0]["text"] if only_text else parts}


def _result(block: Mapping[str, Any], place: str, losses: LossNotes) -> tuple[list[str], list[dict[str, Any]]]:
    if block.get("is_error"):
        losses.note("tool_result.is_error", severity="info")
    content = block.get("content")
    if content is None or isinstance(content, str):
        return [content or ""], []
    parts = [_part(inner, f"{place}.content[{at}]", losses) for at, inner in enumerate(_blocks(content, place))]
    return [part["text"] for part in parts if part["type"] == "text"], [part for part in parts if part["type"] != "text"]


def _part(block: Mapping[str, Any], place: str, losses: LossNotes) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": _text_of(block, place, losses)}
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": _url(block.get("source"), place)}}
    if kind == "document":
        return _document(block, place, losses)
    if kind == "search_result":
        losses.note("search_result.citations", severity="info")
        inner = "\n".join(_text_of(each, place, losses) for each in _blocks(block.get("content"), place))
        return {"type": "text", "text": f"{block.get('title', '')}\n{block.get('source', '')}\n{inner}".strip()}
    raise _unknown(kind, place)


def _document(block: Mapping[str, Any], place: str, losses: LossNotes) -> dict[str, Any]:
    source = block.get("source")
    if block.get("citations"):
        losses.note("document.citations")
    if isinstance(source, Mapping) and source.get("type") == "text" and isinstance(source.get("data"), str):
        return {"type": "text", "text": "\n".join(filter(None, (str(block.get("title") or ""), source["data"])))}
    name = str(block.get("title") or "document.pdf")
    return {"type": "file", "file": {"filename": name, "file_data": _url(source, place)}}


def _url(source: Any, place: str) -> str:
    if isinstance(source, Mapping):
        if source.get("type") == "url" and isinstance(source.get("url"), str):
            return str(source["url"])
        if source.get("type") == "base64" and isinstance(source.get("data"), str):
            return f"data:{source.get('media_type', 'application/octet-stream')};base64,{source['data']}"
    raise RequestError(f"{place}.source must be base64 data with its media_type, or a url", param=f"{place}.source")


def _blocks(content: Any, place: str) -> Sequence[Mapping[str, Any]]:
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise RequestError(f"{place}.content must be a string or a list of blocks", param=place)
    return content


def _text_of(block: Mapping[str, Any], place: str, losses: LossNotes) -> str:
    if block.get("type", "text") != "text":
        raise RequestError(f"{place} must be a block of type text", param=place)
    if not isinstance(block.get("text"), str):
        raise RequestError(f"{place}.text must be a string", param=f"{place}.text")
    if block.get("cache_control"):
        losses.note("cache_control", severity="info")
    return str(block["text"])


def _unknown(kind: Any, place: str) -> RequestError:
    return RequestError(f"{place} has the type {str(kind)[:40]!r}, which cannot be passed to a chat model", param=place, reason="content_part_unsupported")
