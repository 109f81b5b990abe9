"""Endpoints of vllm-sr whose service this router does not have: they say so, in the way of a service that is off."""

from __future__ import annotations

from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import default_recipe
from headway.router.management.route import Route


async def knowledge_bases(call: Call) -> Answer:
    """Those of the configuration; they are changed there."""
    with call.state.generations.use() as generation:
        found = default_recipe(generation).catalog.kbs or ()
        return Answer({"knowledge_bases": [{"name": kb.name, "threshold": kb.threshold, "source": kb.source.path if kb.source else None} for kb in found]})


async def memories(call: Call) -> Answer:
    raise ManagementError("SERVICE_UNAVAILABLE", "long-term memory is not built", 503, fix="Use rag over a local vector store.")


ROUTES = (
    Route("GET", "/api/v1/storage/knowledge-bases", knowledge_bases, "data.read", "The knowledge bases of the configuration.", ("/config/kbs",)),
    Route("GET", "/api/v1/storage/memories", memories, "data.read", "Not built.", ("/v1/memory",)),
)
