"""`POST /v1/completions`: from the body to engine requests. The answer is written by `completion_answer`."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.engine.beam_search import BeamSearchParams
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import MAX_N, SamplingParams
from headway.errors import RequestError
from headway.server.answer_head import answer_head
from headway.server.beam_search import beam_params, shown_params
from headway.server.completion_answer import CompletionWriter
from headway.server.intake import read_body
from headway.server.kv_transfer import asked_transfer
from headway.server.logprob_volume import check_volume
from headway.server.merged_outputs import EngineRequest
from headway.server.prompt_tokens import PromptTokens, off_loop, prompt_from_text, truncated
from headway.server.reasoning.budget import with_marks
from headway.server.request_ids import engine_id
from headway.server.respond import respond
from headway.server.sampling import check_logprobs, check_priority, sampling_params
from headway.server.state import ServerState, state_of
from headway.wire import not_built
from headway.wire.completions import CompletionBody


async def create_completion(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, CompletionBody, not_built.COMPLETION)
    state.model_named(body.model)
    beams = _beams(state, body)
    params = _params(state, body) if beams is None else shown_params(body, body.logprobs)
    params = with_marks(params, state.parsers.reasoning, False)
    characters = sum(len(p) for p in body.prompt if isinstance(p, str))
    prompts = await off_loop(characters, lambda: [_tokens(state, prompt, body) for prompt in body.prompt])
    _check_volume(state, body, prompts)
    head = answer_head(state, request, body, "cmpl-", prompts)
    adapter = state.adapter_named(body.model)
    transfer = asked_transfer(body, len(prompts))
    writer = CompletionWriter(state, body, head, prompts)
    engine_requests = [
        EngineRequest(engine_id(head.id, i), prompt.ids, params, RequestTerms(prompt.text, body.priority, body.cache_salt, adapter=adapter, kv_transfer=transfer), beams)
        for i, prompt in enumerate(prompts)
    ]
    return await respond(state, request, engine_requests, writer.frames if body.stream else None, writer.whole)


def _beams(state: ServerState, body: CompletionBody) -> BeamSearchParams | None:
    check_priority(body, state.engine)
    check_logprobs("logprobs", body.logprobs, state.engine)
    check_logprobs("prompt_logprobs", body.prompt_logprobs, state.engine)
    if len(body.prompt) * body.n > MAX_N:
        raise RequestError(f"{len(body.prompt)} prompts with n={body.n} make more than {MAX_N} choices", param="n")
    if body.use_beam_search and body.echo and body.logprobs is not None:
        raise RequestError("echo and logprobs cannot both be given with use_beam_search", param="echo")
    return beam_params(body, state.engine, body.max_tokens)


def _params(state: ServerState, body: CompletionBody) -> SamplingParams:
    return sampling_params(
        body,
        state.engine,
        max_tokens=body.max_tokens or 1,  # 0 comes with echo: the engine makes one token, which is not shown
        logprobs=body.logprobs,
        prompt_logprobs=body.logprobs if body.echo and body.prompt_logprobs is None else body.prompt_logprobs,
        stream_interval=state.settings.stream_interval,
    )


def _check_volume(state: ServerState, body: CompletionBody, prompts: list[PromptTokens]) -> None:
    of_prompt = body.logprobs if body.echo and body.prompt_logprobs is None else body.prompt_logprobs
    name = "logprobs" if body.prompt_logprobs is None else "prompt_logprobs"
    new = len(prompts) * min(body.max_tokens, state.engine.max_model_len)
    check_volume(state.engine, name, sum(len(p.ids) for p in prompts), of_prompt, new, body.logprobs, body.n)


def _tokens(state: ServerState, prompt: str | list[int], body: CompletionBody) -> PromptTokens:
    if isinstance(prompt, str):
        return prompt_from_text(state, prompt, body, body.add_special_tokens)
    return truncated(state, PromptTokens(prompt, None), body)
