"""The body of a routing preview, read and bounded, as a chat completions body."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import RequestError
from headway.router.generation.names import AUTO_NAMES
from headway.router.management.answer import ManagementError
from headway.router.request.metadata import check_metadata

_PROMPT_FIELDS = frozenset({"tools", "functions", "tool_choice", "function_call", "response_format", "max_tokens", "max_completion_tokens", "metadata"})
_FIELDS = _PROMPT_FIELDS | {"text", "messages", "model", "options", "preview_context"}
_MESSAGE_FIELDS = frozenset({"role", "name", "content", "tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content"})
_CONTEXT_FIELDS = frozenset({"session_id", "conversation_id", "sampling_seed"})
_OPTION_FIELDS = frozenset({"return_probabilities", "confidence_threshold", "include_explanation", "trace"})
_IDENTITY_BYTES = 1024
_SEEDS = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """`body` is what the router would have got; `shown` the text that the preview is about."""

    body: dict[str, Any]
    shown: str
    trace: bool
    session: str | None
    sampling_seed: int | None


def read_preview(given: Mapping[str, Any], trace: bool) -> PreviewRequest:
    """Raises ManagementError for what a preview does not take; nothing is ignored silently."""
    _only(given, _FIELDS, "the body")
    model = given.get("model", AUTO_NAMES[0])
    if not isinstance(model, str):
        raise _invalid("model must be a string")
    options, context = _object(given, "options", _OPTION_FIELDS), _object(given, "preview_context", _CONTEXT_FIELDS)
    messages, shown = _messages(given)
    body = {"model": model or AUTO_NAMES[0], "messages": messages}
    body.update({name: given[name] for name in _PROMPT_FIELDS if name in given})
    _check_metadata(given.get("metadata"))
    seed = context.get("sampling_seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed not in _SEEDS):
        raise _invalid("preview_context.sampling_seed must be a whole number of 64 bits")
    return PreviewRequest(body, shown, trace or options.get("trace") is True, _identity(context, "session_id") or _identity(context, "conversation_id"), seed)


def _messages(given: Mapping[str, Any]) -> tuple[list[Any], str]:
    text, messages = given.get("text"), given.get("messages")
    if text is not None and messages is not None:
        raise _invalid("text and messages are both given", "Send one of them.")
    if text is not None:
        if not isinstance(text, str) or not text.strip():
            raise _invalid("text must be a string that is not empty")
        return [{"role": "user", "content": text}], text
    if not isinstance(messages, list) or not messages:
        raise _invalid("text is missing", "Send text, or messages as for chat completions.")
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise _invalid(f"messages[{at}] must be an object")
        _only(message, _MESSAGE_FIELDS, f"messages[{at}]")
        if not isinstance(message.get("role"), str) or not message["role"].strip():
            raise _invalid(f"messages[{at}] needs a role")
    users = [message for message in messages if message["role"] == "user"]
    content = users[-1].get("content") if users else None
    return messages, content if isinstance(content, str) else ""


def _object(given: Mapping[str, Any], name: str, fields: Collection[str]) -> Mapping[str, Any]:
    found = given.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise _invalid(f"{name} must be an object")
    _only(found, fields, name)
    return found


def _identity(context: Mapping[str, Any], name: str) -> str | None:
    found = context.get(name)
    if found is None:
        return None
    if not isinstance(found, str) or len(found.encode()) > _IDENTITY_BYTES or any(sign in found for sign in "\r\n\0"):
        raise _invalid(f"preview_context.{name} must be a string of at most {_IDENTITY_BYTES} bytes without line ends")
    return found or None


def _check_metadata(found: Any) -> None:
    try:
        check_metadata(found)
    except RequestError as error:
        raise _invalid(error.message) from None


def _only(given: Mapping[str, Any], fields: Collection[str], where: str) -> None:
    strange = [str(name)[:60] for name in given if name not in fields]
    if strange:
        raise _invalid(f"{where} has fields that a preview does not take: {', '.join(strange[:10])}", f"It takes {', '.join(sorted(fields))}.")


def _invalid(message: str, fix: str | None = None) -> ManagementError:
    return ManagementError("INVALID_INPUT", message, fix=fix)
