"""`POST /v1/chat/completions`: from the body to an engine request. The answer is written by `chat_answer`."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request
from starlette.responses import Response

from headway.engine.beam_search import BeamSearchParams
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.server.answer_head import AnswerHead, answer_head
from headway.server.answer_parts import AnswerPlan
from headway.server.answer_plan import planned
from headway.server.beam_search import beam_params, shown_params
from headway.server.chat_answer import ChatWriter
from headway.server.chat_prompt import effort, rendered
from headway.server.images.prompt import prompt_with_images
from headway.server.intake import read_body
from headway.server.kv_transfer import asked_transfer
from headway.server.logprob_volume import check_volume
from headway.server.merged_outputs import EngineRequest
from headway.server.prompt_tokens import PromptTokens, off_loop, prompt_from_text
from headway.server.renamed_fields import renamed
from headway.server.request_ids import engine_id
from headway.server.respond import respond
from headway.server.sampling import check_logprobs, check_priority, sampling_params
from headway.server.state import ServerState, state_of
from headway.server.tools.choice import tool_use
from headway.wire import not_built
from headway.wire.chat import ChatBody
from headway.wire.image_parts import take_images


@dataclass(frozen=True, slots=True)
class PreparedChat:
    """A chat that passed all checks: how its answer begins, its prompt, what the engine is asked, and how its answer is read."""

    head: AnswerHead
    prompt: PromptTokens
    engine_request: EngineRequest
    plan: AnswerPlan  # how the answer is read


async def create_chat_completion(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, ChatBody, not_built.CHAT)
    chat = await prepared(state, request, body, "chatcmpl-")
    writer = ChatWriter(state, body, chat.head, chat.prompt, chat.plan)
    with renamed({"structured_outputs": "tools"} if chat.plan.must_call else {}):  # the form is made of their schemas
        return await respond(state, request, [chat.engine_request], writer.frames if body.stream else None, writer.whole)


async def prepared(state: ServerState, request: Request, body: ChatBody, prefix: str) -> PreparedChat:
    """`body` as a request for the engine, whatever the API that it came through; `prefix` begins the answer's id.

    Raises RequestError, NotFoundError.
    """
    state.model_named(body.model)
    tools = tool_use(body, state.parsers.tools)
    beams = _beams(state, body)
    params = _params(state, body) if beams is None else shown_params(body, _logprobs(body))
    prompt = await prompt_of(state, body)
    plan, params = planned(state, body, tools, prompt, params)
    name = "top_logprobs" if body.prompt_logprobs is None else "prompt_logprobs"
    new = min(body.wanted_tokens or state.engine.max_model_len, state.engine.max_model_len)
    check_volume(state.engine, name, len(prompt.ids), body.prompt_logprobs, new, _logprobs(body), body.n)
    head = answer_head(state, request, body, prefix, [prompt])
    terms = RequestTerms(prompt.text, body.priority, body.cache_salt, adapter=state.adapter_named(body.model), images=prompt.images, kv_transfer=asked_transfer(body))
    return PreparedChat(head, prompt, EngineRequest(engine_id(head.id, 0), prompt.ids, params, terms, beams), plan)


async def prompt_of(state: ServerState, body: ChatBody) -> PromptTokens:
    """The tokens that the chat begins with. Raises RequestError."""
    if (reader := state.engine.images) is not None:
        messages, images = take_images(body.messages)
        if images:
            return await prompt_with_images(state, reader, body, messages, images, _shows_tools(state, body))
    return await off_loop(effort(body.messages, body), lambda: _tokens(state, body))


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


def _shows_tools(state: ServerState, body: ChatBody) -> bool:
    return not (body.tool_choice == "none" and state.settings.exclude_tools_when_tool_choice_none)


def _tokens(state: ServerState, body: ChatBody) -> PromptTokens:
    text = rendered(state, body.messages, body, _shows_tools(state, body))
    return prompt_from_text(state, text, body, body.add_special_tokens)
