"""AnswerHead: what the answers of completions and chat have in common, fixed when the request is accepted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from fastapi import Request

from headway.engine.outputs import RequestOutput
from headway.server.logprobs import TokenNames
from headway.server.prompt_tokens import PromptTokens
from headway.server.request_ids import public_id
from headway.server.request_timings import request_timings
from headway.server.state import ServerState
from headway.server.usage_count import UsageCount
from headway.wire.chunks import ChunkEncoder
from headway.wire.generation_body import GenerationBody
from headway.wire.timings import RequestTimings


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """`closing_usage`: a stream ends with a chunk of usage; `running_usage`: every chunk carries it as well."""

    id: str
    model: str
    created: int
    fingerprint: str | None
    names: TokenNames
    usage: UsageCount
    closing_usage: bool
    running_usage: bool
    with_timings: bool

    def timings(self, finals: Sequence[RequestOutput]) -> RequestTimings | None:
        """For an answer in one piece."""
        return request_timings(finals) if self.with_timings else None

    def last_member(self, output: RequestOutput, prompts: int = 1) -> bytes:
        """The same as a member of a stream's last chunk, with a leading comma; empty before the last output."""
        found = self.timings([output]) if output.finished and prompts == 1 else None
        return b"" if found is None else b',"metrics":' + orjson.dumps(found)

    def chunk_encoder(self, kind: str) -> ChunkEncoder:
        return ChunkEncoder(self.id, kind, self.created, self.model, self.fingerprint)


def answer_head(
    state: ServerState, request: Request, body: GenerationBody, prefix: str, prompts: Sequence[PromptTokens]
) -> AnswerHead:
    settings = state.settings
    options = body.stream_options
    as_ids = body.return_tokens_as_token_ids
    include = settings.enable_force_include_usage or bool(options and options.include_usage)
    continuous = settings.enable_force_include_usage or bool(options and options.continuous_usage_stats)
    return AnswerHead(
        id=f"{prefix}{public_id(request, body.request_id)}",
        model=state.model_named(body.model),
        created=int(time.time()),
        fingerprint=state.fingerprint,
        names=TokenNames(state.pieces, settings.return_tokens_as_token_ids if as_ids is None else as_ids),
        usage=UsageCount(len(prompts), sum(len(p.ids) for p in prompts), settings.enable_prompt_tokens_details),
        closing_usage=include,
        running_usage=include and continuous,
        with_timings=settings.enable_per_request_metrics,
    )
