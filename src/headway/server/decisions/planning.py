"""The planner of one engine: made at the first question, since it looks at every token of the vocabulary."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from headway.decisions.facts import TextFacts
from headway.decisions.planner import DecisionsPlanner
from headway.errors import ArtifactError, RequestError
from headway.server.state import ServerState

if TYPE_CHECKING:
    from headway.artifacts.tokenizer import Tokenizer


async def planner_of(state: ServerState) -> DecisionsPlanner:
    """Raises RequestError (`task_unsupported`) for a model that cannot be asked: without logits, or without tokens for labels."""
    served, engine = state.served, state.engine
    if not engine.pooler.generates:
        raise _unsuited("this model has no logits of tokens: it makes vectors or classes")
    if served.decider is None:
        making = asyncio.to_thread(make_planner, cast("Tokenizer", engine.tokenizer), engine.max_model_len, engine.card.parameters)
        served.decider = asyncio.ensure_future(making)
    try:
        return await asyncio.shield(served.decider)
    except ArtifactError as error:
        raise _unsuited(error.message) from None


def make_planner(tokenizer: Tokenizer, max_tokens: int, parameters: int) -> DecisionsPlanner:
    """Asks as the model runtime asks the same model."""
    from headway.decisions.label_logits.reader import (  # imports tokenizers, late
        LabelLogitsOptions,
        LabelLogitsReader,
        default_labels,
    )

    reader = LabelLogitsReader(tokenizer, max_tokens, LabelLogitsOptions(labels=default_labels(parameters)))
    return DecisionsPlanner(reader, TextFacts({"max_input_tokens": max_tokens}))


def _unsuited(message: str) -> RequestError:
    return RequestError(message, reason="task_unsupported", param="model", fix="Ask a model that can.")
