"""The vector of a request, for selectors that compare it with something."""

from __future__ import annotations

from headway.router.deployments.calls import Unanswered
from headway.router.embedding.embedder import Embedder, Vectors
from headway.router.request.context import RequestContext

_SELECTION_SECONDS = 10.0


async def embedded_query(embedder: Embedder, context: RequestContext) -> Vectors | Unanswered:
    """Of the latest user turn. `no_text` when there is none."""
    text = context.view.user_text
    if not text.strip():
        return Unanswered("no_text")
    calls = context.generation.deployments.open(context.deadline.sooner(_SELECTION_SECONDS)).join()
    try:
        return await embedder.embed(calls, [text])
    finally:
        calls.leave()
