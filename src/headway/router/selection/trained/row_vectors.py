"""The vectors of rows, made by the same client and model that the router asks for those of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from headway.errors import HeadwayError
from headway.router.config.document.document import Document
from headway.router.config.document.routing import Routing
from headway.router.deployments.calls import Unanswered
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.deployments.runtimes import Runtimes
from headway.router.embedding.embedder import unit_rows
from headway.router.embedding.source import required_embedding
from headway.router.metrics.registry import RouterMetrics
from headway.router.request.deadline import Deadline
from headway.router.selection.trained.predictors import Matrix
from headway.router.signals.kind import Recipe

BATCH = 64
_BATCH_SECONDS = 300.0
_ENDPOINT = "rows"


class VectorsError(HeadwayError):
    """The embedding model did not answer."""

    reason = "embedding_failed"


def endpoint_document(url: str, served_name: str | None) -> Document:
    """A configuration whose embedding model is served at `url` (a model runtime: http, https or unix)."""
    deployment = {"provider": "model_runtime", "endpoint": url, **({"served_name": served_name} if served_name else {})}
    binding = {"deployment": _ENDPOINT, "contract": "embedding.v1"}
    catalog = {"deployments": {_ENDPOINT: deployment}, "bindings": {"embedding": binding}}
    return Document.model_validate({"version": "v0.3", "global": {"model_catalog": catalog}})


async def row_vectors(texts: Sequence[str], document: Document, progress: Callable[[int], None], ready_seconds: float = 60.0) -> tuple[Matrix, str]:
    """Unit vectors [rows, width], and what identifies the model that made them. `progress` hears how many texts are done.

    Starts the model if the configuration manages it, and waits for it; `ready_seconds` bounds the wait for one that somebody else runs. Raises ConfigError, VectorsError.
    """
    name = required_embedding(Recipe(document, document.routing or Routing()), "vllm-sr optimize")
    runtimes = Runtimes(RouterMetrics())
    deployments = RuntimeDeployments(document, runtimes)
    try:
        deployments.start({name})
        await deployments.wait()
        made: list[Matrix] = []
        representation = ""
        until = asyncio.get_running_loop().time() + ready_seconds
        while len(made) * BATCH < len(texts):
            batch = texts[len(made) * BATCH : (len(made) + 1) * BATCH]
            calls = deployments.open(Deadline.after(_BATCH_SECONDS)).join()
            try:
                answer = await calls.embed(name, batch)
            finally:
                calls.leave()
            if isinstance(answer, Unanswered):
                if answer.reason in ("unavailable", "overloaded") and asyncio.get_running_loop().time() < until:
                    await asyncio.sleep(0.2)  # an attached runtime that is still starting
                    continue
                raise VectorsError(f'the embedding model "{name}" did not answer: {answer.reason}')
            rows = unit_rows(answer, len(batch))
            if rows is None or (made and answer.representation != representation):
                raise VectorsError(f'the embedding model "{name}" gave vectors that cannot be used, or changed while it was asked')
            representation = answer.representation
            made.append(rows)
            progress(min(len(texts), len(made) * BATCH))
        return np.concatenate(made), representation
    finally:
        await deployments.close()
        await runtimes.close()
