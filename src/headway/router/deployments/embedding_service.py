"""EmbeddingService: an OpenAI-compatible embeddings API as a target of stages (`global.model_catalog.embeddings.semantic.endpoint`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import orjson

from headway.router.config.document.model_catalog import EmbeddingEndpoint
from headway.router.deployments import outcome
from headway.router.deployments.address import address_of
from headway.router.deployments.calls import EMBEDDING_ENDPOINT, Answered, Unanswered
from headway.router.deployments.card import Card
from headway.router.deployments.parked import Surface
from headway.router.deployments.runtime_client import MAX_ANSWER_BYTES, RuntimeClient, RuntimeUnreachableError
from headway.router.metrics.registry import RouterMetrics

_FIRST_PAUSE = 0.1
_DEFAULT_SECONDS = 10.0


class EmbeddingService:
    """Its vectors are identified by address, model and size, since it does not say which weights made them."""

    def __init__(self, endpoint: EmbeddingEndpoint, key: str | None, metrics: RouterMetrics) -> None:
        self._endpoint, self._metrics = endpoint, metrics
        self._client = RuntimeClient(address_of(endpoint.base_url or ""), key)
        self._timeout = float(endpoint.timeout_seconds or _DEFAULT_SECONDS)
        self._attempts = 1 + (endpoint.max_retries or 0)

    @property
    def card(self) -> Card | None:
        return None

    @property
    def most_inputs(self) -> int:
        return 256

    def fixed(self, surface: Surface) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return {"model": self._endpoint.model, **({"dimensions": self._endpoint.dimensions} if self._endpoint.dimensions else {})}, {}

    async def ask(
        self, surface: Surface, fields: Mapping[str, Any], options: Mapping[str, Any], timeout: float
    ) -> Answered[Mapping[str, Any]] | Unanswered:
        if surface != "embeddings":
            return Unanswered(outcome.REJECTED)
        began = time.monotonic()
        end = began + min(timeout, self._timeout)
        ended, pause = outcome.TIMEOUT, _FIRST_PAUSE
        for attempt in range(self._attempts):
            if attempt:
                await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))
                pause *= 2
            if end <= time.monotonic():
                break
            ended, body = await self._once(orjson.dumps(fields), end - time.monotonic())
            if body is not None:
                self._metrics.count("vsr_model_runtime_requests", EMBEDDING_ENDPOINT, ended)
                return Answered(self._named(body), seconds=time.monotonic() - began)
            if ended == outcome.REJECTED:
                break
        self._metrics.count("vsr_model_runtime_requests", EMBEDDING_ENDPOINT, ended)
        return Unanswered(ended)

    def count_unanswered(self, reason: str) -> None:
        self._metrics.count("vsr_model_runtime_unknown_answers", EMBEDDING_ENDPOINT, reason)

    async def close(self) -> None:
        await self._client.close()

    async def _once(self, body: bytes, timeout: float) -> tuple[str, dict[str, Any] | None]:
        try:
            exchange = await self._client.post("/embeddings", body, timeout, self._endpoint.max_response_bytes or MAX_ANSWER_BYTES)
        except TimeoutError:
            return outcome.TIMEOUT, None
        except RuntimeUnreachableError:
            return outcome.UNAVAILABLE, None
        ended = outcome.of_status(exchange.status)
        if ended != outcome.OK:
            return ended, None
        try:
            answer = orjson.loads(exchange.body)
        except ValueError:
            return outcome.FAILED, None
        return (ended, answer) if isinstance(answer, dict) else (outcome.FAILED, None)

    def _named(self, body: dict[str, Any]) -> dict[str, Any]:
        """With the representation that a runtime would name."""
        first = next((item.get("embedding") for item in body.get("data") or () if isinstance(item, dict)), None)
        width = len(first) if isinstance(first, list) else self._endpoint.dimensions or 0
        identity = f"{self._endpoint.base_url}#{self._endpoint.model}"
        return {**body, "meta": {"representation": {"model_sha256": identity, "layer": 0, "dimension": width}}}
