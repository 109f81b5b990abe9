"""Format: one API that backends speak."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import RequestError
from headway.router.protocols.translation import Losses
from headway.router.request.reply import Chunks

Body = dict[str, Any]


class BackendReportedError(Exception):
    """A stream's own event says that it failed. The text is the backend's word for it, bounded."""

    def __init__(self, kind: object) -> None:
        super().__init__(str(kind)[:100])


@dataclass(frozen=True, slots=True)
class Format:
    """`request` makes the backend's body of a chat completions body; it raises RequestError for what the API cannot do, and notes what it leaves out.

    For answers that are chat completions already, `whole` and `chunks` are None. `whole` makes a chat completion of an answer, `chunks` makes chat
    completion chunks of the data of its events; with usage in the last one if that is asked for. Both raise KeyError, TypeError or ValueError
    for what is no such answer, `chunks` BackendReportedError for a failure that the backend tells of.
    """

    request: Callable[[Body, Losses], Body]
    whole: Callable[[Body], Body] | None = None
    chunks: Callable[[AsyncIterator[bytes], bool], Chunks] | None = None


def refuse(body: Mapping[str, Any], fields: Mapping[str, Any], api: str) -> None:
    """Raises RequestError for a field that changes the answer and that the API does not have, unless it has the value that changes nothing."""
    for name, harmless in fields.items():
        if body.get(name) not in (None, harmless):
            raise RequestError(f"the model that was selected is asked through {api}, which has no {name}", param=name, reason="not_built")


def parts_of_content(content: Any) -> list[Mapping[str, Any]]:
    """The parts of a message's content; a string is one text part."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def text_of_content(content: Any) -> str:
    return "\n".join(part["text"] for part in parts_of_content(content) if isinstance(part.get("text"), str))


def unknown_part(kind: object, api: str) -> RequestError:
    return RequestError(
        f"the model that was selected is asked through {api}, which takes no content of type {kind}", param="messages", reason="content_part_unsupported"
    )


def chunk_of(head: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None = None) -> Body:
    return {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish}]}


def call_delta(index: int, arguments: str, id: str | None = None, name: str | None = None) -> Body:
    """A piece of a tool call; id and name come with the first one."""
    function: Body = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, **({} if id is None else {"id": id, "type": "function"}), "function": function}]}


def usage_of_counts(prompt: int, completion: int, cached: int = 0, written: int = 0, reasoning: int = 0, written_1h: int = 0) -> Body:
    """`written` tokens went into the backend's cache, `written_1h` of them for an hour."""
    details: Body = {"cached_tokens": cached} | ({"cache_creation_tokens": written} if written else {})
    details |= {"cache_creation_1h_tokens": written_1h} if written_1h else {}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
