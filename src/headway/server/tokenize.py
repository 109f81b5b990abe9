"""`POST /tokenize` and `POST /detokenize`."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.errors import RequestError
from headway.server.chat_prompt import effort, rendered
from headway.server.intake import read_body
from headway.server.prompt_tokens import off_loop
from headway.server.respond import json_response
from headway.server.state import ServerState, state_of
from headway.wire.tokenize import DetokenizeAnswer, DetokenizeBody, TokenizeAnswer, TokenizeBody


async def tokenize(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, TokenizeBody)
    state.model_named(body.model)
    size = len(body.prompt) if body.prompt is not None else effort(body.messages or [], body)
    return json_response(await off_loop(size, lambda: _tokenized(state, body)))


def _tokenized(state: ServerState, body: TokenizeBody) -> TokenizeAnswer:
    is_text = body.prompt is not None
    text = body.prompt if body.prompt is not None else rendered(state, body.messages or [], body, with_tools=True)
    special = is_text if body.add_special_tokens is None else body.add_special_tokens
    ids = state.engine.tokenizer.encode(text, special)
    return {
        "count": len(ids),
        "max_model_len": state.engine.max_model_len,
        "tokens": ids,
        "token_strs": [state.pieces.text(i) for i in ids] if body.return_token_strs else None,
    }


async def detokenize(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, DetokenizeBody)
    state.model_named(body.model)
    size = state.engine.vocab_size
    wrong = next((token for token in body.tokens if not 0 <= token < size), None)
    if wrong is not None:
        raise RequestError(
            f"tokens holds {wrong}, which is out of range: the vocabulary has {size} tokens",
            reason="token_out_of_vocabulary",
            param="tokens",
        )
    text = await off_loop(len(body.tokens), lambda: state.engine.tokenizer.decode(body.tokens, False))
    answer: DetokenizeAnswer = {"prompt": text}
    return json_response(answer)
