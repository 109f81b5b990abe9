"""From a checked chat to how its answer is read, and to what that needs of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from headway.engine.sampling_params import SamplingParams
from headway.engine.structured.request import StructuredOutputs
from headway.errors import RequestError
from headway.server.answer_parts import PLAIN, AnswerPlan
from headway.server.chat_prompt import template_kwargs
from headway.server.prompt_tokens import PromptTokens
from headway.server.reasoning.budget import with_marks
from headway.server.reasoning.parsers import ReasoningParser
from headway.server.reasoning.thoughts import thoughts
from headway.server.state import ServerState
from headway.server.tools.choice import ToolUse
from headway.wire.chat import ChatBody
from headway.wire.messages import plain_messages


def planned(
    state: ServerState, body: ChatBody, tools: ToolUse, prompt: PromptTokens, params: SamplingParams
) -> tuple[AnswerPlan, SamplingParams]:
    """How the answer is read, and `params` with what that needs. Raises RequestError for forms that contradict each other."""
    parser = state.parsers.reasoning
    if parser is None and tools.reader is None:
        return PLAIN, with_marks(params, parser, False)
    are_open = parser is not None and _thoughts_are_open(parser, body, prompt, template_kwargs(state, body))
    plan = AnswerPlan(
        thoughts=None if parser is None else partial(thoughts, parser, are_open),
        calls=tools.reader,
        must_call=tools.form is not None,
        parallel=body.parallel_tool_calls,
        shows_reasoning=body.include_reasoning,
        short_ids=state.parsers.short_ids,
    )
    form = _form(body, params.structured_outputs, tools)
    changes: dict[str, Any] = {"structured_outputs": form}
    if tools.special_tokens or (parser is not None and parser.special_tokens):
        changes["skip_special_tokens"] = False
    if parser is not None and form is not None and are_open:
        end = state.engine.tokenizer.encode(parser.ends[0], False)
        changes["structured_outputs"] = replace(form, starts_after=tuple(end))
    return plan, replace(with_marks(params, parser, are_open), **changes)


def _form(body: ChatBody, asked: StructuredOutputs | None, tools: ToolUse) -> StructuredOutputs | None:
    if asked is not None and tools.form is not None:
        raise RequestError(
            "structured output and a tool call that must be made cannot be asked for together", param="tool_choice",
            fix='Leave out response_format and structured_outputs, or send tool_choice "auto" or "none".',
        )  # fmt: skip
    if body.use_beam_search and tools.form is not None:
        raise RequestError("tool_choice cannot force a call with use_beam_search: beams are not held to a form", param="tool_choice")
    return tools.form or asked


def _thoughts_are_open(parser: ReasoningParser, body: ChatBody, prompt: PromptTokens, variables: Mapping[str, Any]) -> bool:
    """Whether the answer begins inside of thoughts, by what the prompt ends with, or else by what the model does."""
    if body.continue_final_message:
        text: str = plain_messages(body.messages[-1:])[0]["content"]
        return max(map(text.rfind, parser.begins)) > max(map(text.rfind, parser.ends))
    said = parser.thoughts_are_open(prompt.text or "")
    return parser.expects_thoughts(variables) if said is None else said
