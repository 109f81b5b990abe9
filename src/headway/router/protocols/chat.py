"""Chat completions, the form that everything else is translated to: nothing is rewritten but what accounting added."""

from __future__ import annotations

from typing import Any

from headway.errors import RequestError

MOST_MESSAGES = 100_000


def check_chat(body: dict[str, Any]) -> None:
    """What routing itself relies on; everything else is the backend's to judge. Raises RequestError."""
    require_model(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages must be a list with at least one message", param="messages", fix='Send [{"role": "user", "content": "..."}].')
    if len(messages) > MOST_MESSAGES:
        raise RequestError(f"messages has {len(messages)} entries, the most is {MOST_MESSAGES}", param="messages")
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RequestError(f"messages[{at}] must be an object with a role", param=f"messages[{at}]")
    check_stream(body)


def check_stream(body: dict[str, Any]) -> None:
    """Raises RequestError unless `stream` and `stream_options` are what their names say, and fit each other."""
    stream, options = body.get("stream"), body.get("stream_options")
    if stream is not None and not isinstance(stream, bool):
        raise RequestError("stream must be true or false", param="stream")
    if options is None:
        return
    if not isinstance(options, dict):
        raise RequestError("stream_options must be an object", param="stream_options")
    if not stream:
        raise RequestError("stream_options is only allowed when stream is true", param="stream_options", fix="Leave it out, or set stream.")


def require_model(body: dict[str, Any]) -> None:
    """Raises RequestError `model_required`."""
    model = body.get("model")
    if model is None or model == "":
        raise RequestError("model is required", param="model", reason="model_required", fix='Use "vllm-sr/auto" to let the router choose.')
    if not isinstance(model, str):
        raise RequestError("model must be a string", param="model")
