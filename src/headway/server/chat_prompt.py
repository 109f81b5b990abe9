"""From messages to prompt tokens: checked, rendered by the model's chat template, tokenized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.engine.images.template_messages import template_messages
from headway.errors import RequestError
from headway.server.foreign_template import render_foreign
from headway.server.prompt_tokens import LONG_TEXT
from headway.server.state import ServerState
from headway.wire.chat import TemplateFields
from headway.wire.image_parts import messages_of_parts
from headway.wire.messages import plain_messages
from headway.wire.template_variables import template_variables


def rendered(state: ServerState, messages: Sequence[dict[str, Any]], body: TemplateFields, with_tools: bool) -> str:
    """The prompt text. Raises RequestError for messages or templates that cannot be used."""
    if body.chat_template is not None and not state.settings.trust_request_chat_template:
        raise RequestError(
            "This server takes no chat_template from requests",
            reason="chat_template_untrusted",
            param="chat_template",
            fix="Leave it out, or start the server with --trust-request-chat-template.",
        )
    kwargs = template_kwargs(state, body)
    tokenizer = state.engine.tokenizer
    shown = _shown(state, messages, body)
    if body.chat_template is not None and body.chat_template not in tokenizer.chat_templates:
        return render_foreign(
            state.settings.chat_template_render_timeout,
            template=body.chat_template,
            messages=shown,
            special_tokens=dict(tokenizer.special_tokens),
            add_generation_prompt=body.opens_answer,
            continue_final_message=body.continue_final_message,
            tools=(body.tools or None) if with_tools else None,
            documents=body.documents,
            variables=kwargs,
        )
    return tokenizer.render_chat(
        shown,
        add_generation_prompt=body.opens_answer,
        continue_final_message=body.continue_final_message,
        chat_template=body.chat_template or state.chat_template,
        tools=(body.tools or None) if with_tools else None,
        documents=body.documents,
        **kwargs,
    )


def _shown(state: ServerState, messages: Sequence[dict[str, Any]], body: TemplateFields) -> list[dict[str, Any]]:
    """As the template wants them. Raises RequestError."""
    if state.engine.images is None:
        return plain_messages(messages)
    tokenizer, named = state.engine.tokenizer, body.chat_template
    if named is not None and named not in tokenizer.chat_templates:
        return messages_of_parts(messages)  # nothing is tried with a template of a request
    template = tokenizer.chat_template if named is None else tokenizer.chat_templates[named]
    return template_messages(messages, (state.chat_template if named is None else None) or template)


def template_kwargs(state: ServerState, body: TemplateFields) -> dict[str, Any]:
    """Variables for the template: the server's, replaced by the request's. Effort "none" turns thinking off where there is such a switch."""
    kwargs = dict(state.settings.default_chat_template_kwargs) | dict(template_variables(body.chat_template_kwargs))
    if body.reasoning_effort is not None:
        kwargs.setdefault("reasoning_effort", body.reasoning_effort)
        if body.reasoning_effort == "none":
            kwargs.setdefault("enable_thinking", False)
    return kwargs


def effort(messages: Sequence[dict[str, Any]], body: TemplateFields) -> int:
    """About how many characters there are to render; a template that must be rendered elsewhere counts as a long text."""
    tools = sum(len(str(tool)) for tool in body.tools or ())
    return sum(len(str(message.get("content", ""))) for message in messages) + tools + (LONG_TEXT if body.chat_template else 0)
