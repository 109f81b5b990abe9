"""`POST /v1/chat/completions`: from the body to an engine request. The answer is written by `chat_answer`."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.engine.beam_search import BeamSearchParams
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.server.answer_head import answer_head
from headway.server.beam_search import beam_params, shown_params
from headway.server.chat_answer import ChatWriter
from headway.server.chat_prompt import effort, rendered
from headway.server.intake import read_body
from headway.server.logprob_volume import check_volume
from headway.server.merged_outputs import EngineRequest
from headway.server.prompt_tokens import PromptTokens, off_loop, prompt_from_text
from headway.server.request_ids import engine_id
from headway.server.respond import respond
from headway.server.sampling import check_logprobs, check_priority, sampling_params
from headway.server.state import ServerState, state_of
from headway.wire import not_built
from headway.wire.chat import ChatBody


async def create_chat_completion(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, ChatBody, not_built.CHAT)
    state.model_named(body.model)
    beams = _beams(state, body)
    params = _params(state, body) if beams is None else shown_params(body, _logprobs(body))
    prompt = await off_loop(effort(body.messages, body), lambda: _tokens(state, body))
    name = "top_logprobs" if body.prompt_logprobs is None else "prompt_logprobs"
    new = min(body.wanted_tokens or state.engine.max_model_len, state.engine.max_model_len)
    check_volume(state.engine, name, len(prompt.ids), body.prompt_logprobs, new, _logprobs(body), body.n)
    head = answer_head(state, request, body, "chatcmpl", [prompt])
    writer = ChatWriter(state, body, head, prompt)
    terms = RequestTerms(prompt.text, body.priority, body.cache_salt)
    engine_request = EngineRequest(engine_id(head.id, 0), prompt.ids, params, terms, beams)
    return await respond(state, request, [engine_request], writer.frames if body.stream else None, writer.whole)


def _beams(state: ServerState, body: ChatBody) -> BeamSearchParams | None:
    check_priority(body, state.engine)
    check_logprobs("top_logprobs", body.top_logprobs, state.engine)
    check_logprobs("prompt_logprobs", body.prompt_logprobs, state.engine)
    return beam_params(body, state.engine, body.wanted_tokens)


def _logprobs(body: ChatBody) -> int | None:
    return (body.top_logprobs or 0) if body.logprobs else None


def _params(state: ServerState, body: ChatBody) -> SamplingParams:
    return sampling_params(
        body,
        state.engine,
        max_tokens=body.wanted_tokens,
        logprobs=_logprobs(body),
        prompt_logprobs=body.prompt_logprobs,
        stream_interval=state.settings.stream_interval,
    )


def _tokens(state: ServerState, body: ChatBody) -> PromptTokens:
    with_tools = not (body.tool_choice == "none" and state.settings.exclude_tools_when_tool_choice_none)
    text = rendered(state, body.messages, body, with_tools)
    return prompt_from_text(state, text, body, body.add_special_tokens)
