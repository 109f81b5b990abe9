"""`POST /v1/messages/count_tokens`: the answer."""

from __future__ import annotations

from typing_extensions import TypedDict


class CountTokensAnswer(TypedDict):
    input_tokens: int
