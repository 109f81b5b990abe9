"""kv_transfer_params of a body, checked against the rest of it."""

from __future__ import annotations

from headway.engine.kv_transfer.params import PARAM, TransferParams, transfer_params
from headway.errors import RequestError
from headway.wire.generation_body import GenerationBody


def asked_transfer(body: GenerationBody, prompts: int = 1) -> TransferParams | None:
    """None where no blocks are to be moved. `prompts`: of the body. Raises RequestError."""
    params = transfer_params(body.kv_transfer_params)
    if params is None:
        return None
    if prompts != 1:
        raise RequestError(f"{PARAM} belongs to one prompt, got {prompts}", param=PARAM, fix="Send each in a request of its own.")
    if body.use_beam_search:
        raise RequestError(f"{PARAM} cannot be given with use_beam_search", param=PARAM)
    if params.keeps and body.stream:
        raise RequestError(f"{PARAM}: what do_remote_decode leads to stands in a whole answer", param=PARAM, fix="Send stream=false with max_tokens=1.")
    return params
