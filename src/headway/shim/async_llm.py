"""AsyncLLM with the calls of vLLM's class of that name, on top of AsyncEngine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Self, cast

from headway.engine.async_engine import AsyncEngine
from headway.engine.lora.lora_request import LoRARequest
from headway.engine.outputs import RequestOutput
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.engine.traced import traced
from headway.errors import EngineDeadError, RequestError
from headway.shim.engine_args import EngineArgs

_POLL_SECONDS = 0.02


class AsyncLLM:
    """`AsyncLLM.from_engine_args(args)` blocks until the model is loaded, as vLLM's does."""

    def __init__(self, engine: AsyncEngine):
        self._engine = engine

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs) -> Self:
        """Raises EngineDeadError with the cause when the model cannot be loaded."""
        config = engine_args.create_engine_config()
        engine = AsyncEngine(config, traced(config))
        engine.start()
        while engine.status.stage not in ("ready", "dead", "stopped"):
            time.sleep(_POLL_SECONDS)
        if not engine.is_ready:
            raise EngineDeadError(engine.status.error or "the engine stopped while loading")
        return cls(engine)

    def generate(
        self,
        prompt: str | list[int] | Mapping[str, Any],
        sampling_params: SamplingParams,
        request_id: str,
        *,
        lora_request: LoRARequest | None = None,
        priority: int = 0,
    ) -> AsyncIterator[RequestOutput]:
        """Outputs as they come. `prompt`: a text, token ids, {"prompt": ...} or {"prompt_token_ids": ...}."""
        text: Any = None
        given: Any = prompt
        if isinstance(prompt, Mapping):
            text, given = prompt.get("prompt"), prompt.get("prompt_token_ids", prompt.get("prompt"))
        if not isinstance(given, str | list):
            raise RequestError("a prompt needs 'prompt' or 'prompt_token_ids'", param="prompt")
        terms = RequestTerms(prompt_text=text, priority=priority)
        if lora_request is None:
            return self._engine.generate(given, sampling_params, request_id, terms)
        return self._adapted(given, sampling_params, request_id, terms, lora_request)

    async def _adapted(
        self, prompt: str | list[int], params: SamplingParams, request_id: str, terms: RequestTerms, lora_request: LoRARequest
    ) -> AsyncIterator[RequestOutput]:
        adapter = await asyncio.to_thread(self._engine.adapters.add, lora_request)
        generating = self._engine.generate(prompt, params, request_id, replace(terms, adapter=adapter))
        async with aclosing(cast(AsyncGenerator[RequestOutput, None], generating)) as outputs:
            async for output in outputs:
                yield output

    async def add_lora(self, lora_request: LoRARequest) -> bool:
        """Read an adapter before it is asked for. Raises AdapterError, RequestError."""
        await asyncio.to_thread(self._engine.adapters.add, lora_request)
        return True

    async def remove_lora(self, lora_id: int) -> bool:
        return self._engine.adapters.remove(lora_id)

    async def list_loras(self) -> set[int]:
        return self._engine.adapters.numbers

    async def abort(self, request_id: str) -> None:
        await self._engine.abort(request_id)

    @property
    def errored(self) -> bool:
        return self._engine.dead_reason is not None

    async def check_health(self) -> None:
        if self._engine.dead_reason is not None:
            raise EngineDeadError(self._engine.dead_reason)

    def shutdown(self) -> None:
        """End the engine's thread. Inside a running event loop it ends on its own a moment later."""
        try:
            asyncio.get_running_loop().create_task(self._engine.shutdown())
        except RuntimeError:
            asyncio.run(self._engine.shutdown())
