"""`POST /invocations`: a body of one of two other routes."""

from __future__ import annotations

from headway.wire.fields import Body
from headway.wire.messages import Messages
from headway.wire.prompt_field import PromptField


class InvocationBody(Body):
    """For the API description; the handler passes the body on to the chat or the completion that it is for."""

    messages: Messages | None = None
    prompt: PromptField | None = None
    stream: bool = False
