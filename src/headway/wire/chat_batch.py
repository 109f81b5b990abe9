"""`POST /v1/chat/completions/batch`: several talks with the same other fields, one choice for each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headway.wire.fields import Body
from headway.wire.messages import Messages
from headway.wire.prompt_field import MAX_PROMPTS


class ChatBatchBody(Body):
    """The fields besides `messages` are those of a chat."""

    messages: Annotated[list[Messages], Field(min_length=1, max_length=MAX_PROMPTS)]
