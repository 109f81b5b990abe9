"""`thinking_token_budget` of a request, with the marks that the server's reasoning parser knows."""

from __future__ import annotations

from dataclasses import replace

from headway.engine.sampling_params import SamplingParams
from headway.engine.thinking.marks import ThinkingMarks
from headway.errors import RequestError
from headway.server.reasoning.parsers import ReasoningParser


def with_marks(params: SamplingParams, parser: ReasoningParser | None, are_open: bool) -> SamplingParams:
    """`are_open`: the answer begins inside of thoughts. Raises RequestError for a budget without a parser."""
    if params.thinking_token_budget is None:
        return params
    if parser is None:
        raise RequestError(
            "thinking_token_budget needs a server that knows how its model marks reasoning",
            reason="thinking_budget_unavailable", param="thinking_token_budget", fix="Start it with --reasoning-parser.",
        )  # fmt: skip
    return replace(params, thinking_marks=ThinkingMarks(parser.begins[0], parser.ends[0], are_open))
