"""RuntimeParticipant: the calls of one signal of a stage, each parked until the stage sends it."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.router.deployments import outcome, task_answers
from headway.router.deployments.calls import Answered, Distribution, FoundSpan, Unanswered
from headway.router.deployments.parked import Parked, ParkedInputs, ParkedQuestion

if TYPE_CHECKING:
    from headway.router.deployments.stage import RuntimeStage


class RuntimeParticipant:
    """`waiting` holds its calls that are not answered yet."""

    def __init__(self, stage: RuntimeStage) -> None:
        self._stage = stage
        self.waiting: set[Parked] = set()

    def leave(self) -> None:
        self._stage.leave(self)

    async def decide(
        self, deployment: str, question: Mapping[str, Any], state: Any, *, timeout: float | None = None, full: bool = False
    ) -> Answered[Mapping[str, Any]] | Unanswered:
        common = self._common(deployment, timeout)
        answer: Answered[Mapping[str, Any]] | Unanswered = await self._stage.park(ParkedQuestion(*common, question=question, state=state, full=full))
        return answer

    async def classify(
        self, deployment: str, texts: Sequence[str | Mapping[str, Any]], *, head: str | None = None, timeout: float | None = None
    ) -> Sequence[Answered[Distribution] | Unanswered]:
        found: Sequence[Answered[Distribution] | Unanswered] = await self._heads(deployment, texts, head, timeout, task_answers.distributions)
        return found

    async def find_spans(
        self, deployment: str, texts: Sequence[str | Mapping[str, Any]], *, head: str | None = None, timeout: float | None = None
    ) -> Sequence[Answered[Sequence[FoundSpan]] | Unanswered]:
        found: Sequence[Answered[Sequence[FoundSpan]] | Unanswered] = await self._heads(deployment, texts, head, timeout, task_answers.found_spans)
        return found

    async def embed(
        self, deployment: str, inputs: Sequence[str | Mapping[str, Any]], *, timeout: float | None = None
    ) -> Answered[Sequence[Sequence[float]]] | Unanswered:
        if not inputs:
            return Unanswered(outcome.REJECTED)
        item = ParkedInputs(
            *self._common(deployment, timeout), surface="embeddings", inputs=[_embedded(given) for given in inputs],
            read=task_answers.vectors, combine=task_answers.all_vectors,
        )  # fmt: skip
        answer: Answered[Sequence[Sequence[float]]] | Unanswered = await self._stage.park(item)
        return answer

    async def rerank(
        self, deployment: str, query: str, documents: Sequence[str], *, timeout: float | None = None
    ) -> Sequence[Answered[float] | Unanswered]:
        read = task_answers.relevances
        found: Sequence[Answered[float] | Unanswered] = await self._many(deployment, timeout, "rerank", query, documents, {"query": query}, read)
        return found

    async def _heads(
        self, deployment: str, texts: Sequence[Any], head: str | None, timeout: float | None, read: Any
    ) -> Any:
        fields = {} if head is None else {"head": head}
        return await self._many(deployment, timeout, "classify", (head, read), texts, fields, read)

    async def _many(
        self, deployment: str, timeout: float | None, surface: Any, key: Hashable, inputs: Sequence[Any], fields: Mapping[str, Any], read: Any
    ) -> Any:
        if not inputs:
            return []
        item = ParkedInputs(*self._common(deployment, timeout), surface=surface, key=key, inputs=list(inputs), fields=fields, read=read)
        return await self._stage.park(item)

    def _common(self, deployment: str, timeout: float | None) -> tuple[str, RuntimeParticipant, asyncio.Future[Any], float, float]:
        loop = asyncio.get_running_loop()
        return deployment, self, loop.create_future(), loop.time(), self._stage.until(timeout)


def _embedded(given: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """A text, or a content part with an image."""
    if isinstance(given, str):
        return given
    return {"type": "image_url", "image_url": {"url": given["image"]}} if "image" in given else given
