"""Routes that tell about the server itself; each exists only when the operator asked for it."""

from __future__ import annotations

import dataclasses
from typing import Any

from fastapi import Request
from starlette.responses import Response

from headway import __version__
from headway.server.respond import json_response
from headway.server.state import state_of


async def tokenizer_info(request: Request) -> Response:
    """Special tokens, sizes and the chat template of the tokenizer (`--enable-tokenizer-info-endpoint`)."""
    state = state_of(request)
    state.require_ready()
    tokenizer = state.engine.tokenizer
    return json_response(
        {
            "tokenizer_class": type(tokenizer).__name__,
            "vocab_size": tokenizer.vocab_size,
            "model_max_length": state.engine.max_model_len,
            "chat_template": state.chat_template or tokenizer.chat_template,
            **tokenizer.special_tokens,
        }
    )


async def server_info(request: Request) -> Response:
    """The configuration in force, without keys (VLLM_SERVER_DEV_MODE=1)."""
    state = state_of(request)
    server = dataclasses.asdict(state.settings)
    server["api_key"] = f"{len(state.settings.api_key)} key(s)"
    engine: dict[str, Any] = dataclasses.asdict(state.engine.config)
    return json_response({"version": __version__, "vllm_config": _plain(engine), "server": _plain(server)})


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """What JSON has no word for is shown as text."""
    kinds = (str, int, float, bool, list, tuple, dict, type(None))
    return {name: value if isinstance(value, kinds) else repr(value) for name, value in values.items()}
