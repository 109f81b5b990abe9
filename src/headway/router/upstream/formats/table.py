"""Every format by the word of `api_format`."""

from __future__ import annotations

from collections.abc import Mapping

from headway.router.upstream.formats.anthropic_answer import chunks_of_message, completion_of_message
from headway.router.upstream.formats.anthropic_request import messages_request
from headway.router.upstream.formats.format import Format
from headway.router.upstream.formats.responses_answer import chunks_of_response, completion_of_response
from headway.router.upstream.formats.responses_request import responses_request

FORMATS: Mapping[str, Format] = {
    "openai": Format(request=lambda body, losses: body),
    "anthropic": Format(messages_request, completion_of_message, chunks_of_message),
    "responses": Format(responses_request, completion_of_response, chunks_of_response),
}
