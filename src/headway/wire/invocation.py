"""`POST /invocations`: a body of one of two other routes."""

from __future__ import annotations

from pydantic import RootModel

from headway.wire.chat import ChatBody
from headway.wire.completions import CompletionBody


class InvocationBody(RootModel[ChatBody | CompletionBody]):
    """For the API description; the handler passes the body on to the route that it is for."""
