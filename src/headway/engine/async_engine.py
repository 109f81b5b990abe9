"""AsyncEngine: the engine core on a thread of its own, for servers.

The thread loads the model, then steps. Callers live on event loops and speak to it through one queue of commands; what
a step produced goes back to each loop in one call. Nothing else crosses the border.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from headway.artifacts.card import ModelCard
from headway.artifacts.tokenizer import Tokenizer
from headway.engine.admission import admit
from headway.engine.async_beam_search import search_beams
from headway.engine.beam_search import BeamSearchParams
from headway.engine.commands import POLL_SECONDS, Commands
from headway.engine.config import EngineConfig
from headway.engine.core import EngineCore, Observers
from headway.engine.distributed.rank_group import RankGroup, RankStatus
from headway.engine.engine_status import EngineStatus
from headway.engine.kv_transfer.transfer import KVTransfer, prepare_transfer, start_transfer
from headway.engine.loading import LoadedEngine, load_engine
from headway.engine.lora.registry import AdapterRegistry, enabled
from headway.engine.open_requests import OpenRequests
from headway.engine.operations.engine_operations import EngineOperations
from headway.engine.operations.gate import Gate
from headway.engine.outputs import RequestOutput
from headway.engine.pooling.pooler import Pooler
from headway.engine.pooling.pooling_admission import admit_reading
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.recovery.rank_watch import bare, watch
from headway.engine.recovery.restarts import Restarts
from headway.engine.request_terms import ORDINARY, RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request
from headway.errors import EngineDeadError, HeadwayError, LoadingError, RankError, RestartingError, StepError
from headway.host.heap import release_free_memory
from headway.telemetry.stats import NOTHING, RankStats

if TYPE_CHECKING:
    from headway.engine.images.reader import ImageReader

_log = logging.getLogger(__name__)
T = TypeVar("T")
_LONG_TEXT = 4096  # characters; longer texts are tokenized off the event loop


class AsyncEngine:
    """See `generate`. Raises LoadingError before the model is ready, RestartingError while it is loaded again since a rank failed, and
    EngineDeadError after the core has stopped."""

    def __init__(self, config: EngineConfig, observers: Observers | None = None):
        self.config = config
        self.observers = observers or Observers()
        self._loaded: LoadedEngine | None = None
        self._stage, self._progress = "resolving", 0.0
        self._error: str | None = None
        self.failure: HeadwayError | None = None  # why loading failed
        self.restarts = Restarts()
        self.gate = Gate()
        self.operations = EngineOperations(self)
        self._commands = Commands()
        self._listeners = OpenRequests()
        self._transfer: KVTransfer | None = None
        self._ready = threading.Event()  # also set when loading failed
        self._thread = threading.Thread(target=self._observed, name="EngineCore", daemon=True)

    # ---- life ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin loading; returns at once."""
        self._thread.start()

    async def ready(self) -> None:
        """Wait until requests can be served. Raises EngineDeadError with the cause if loading failed."""
        while not self._ready.is_set():
            await asyncio.sleep(0.02)
        if self._stage in ("dead", "stopped"):
            raise EngineDeadError(self._error or "the engine stopped while loading")

    async def shutdown(self) -> None:
        """Abort what runs and end the thread."""
        if self._thread.is_alive():
            self._commands.put(None)
            while self._thread.is_alive():
                await asyncio.sleep(0.01)

    @property
    def status(self) -> EngineStatus:
        loaded, restart = self._loaded, self.restarts.now
        if loaded is None:
            return EngineStatus(self._stage, self._progress, restart.message if restart else self._error, 0, restart=restart)
        core = loaded.core
        return EngineStatus(
            self._stage, self._progress, self._error, core.steps,
            len(self._listeners), len(core.scheduler.running), len(core.scheduler.waiting), core.scheduler.kv.pool.usage,
            self.gate.held,
        )  # fmt: skip

    @property
    def is_ready(self) -> bool:
        return self._stage == "ready"

    @property
    def dead_reason(self) -> str | None:
        return self._error if self._stage == "dead" else None

    @property
    def loaded(self) -> LoadedEngine:
        """The loaded parts; LoadingError or EngineDeadError when there are none."""
        if self._stage in ("dead", "stopped"):
            raise self._gone()
        loaded = self._loaded
        if self._stage == "restarting":
            raise RestartingError(self.status.error or "The engine starts again")
        if loaded is None or self._stage != "ready":
            raise LoadingError(f"the model is loading (stage {self._stage}, {self._progress:.0%}); try again shortly")
        return loaded

    @property
    def ranks(self) -> tuple[RankStatus, ...]:
        """The processes that compute the model, where there are several."""
        return () if (group := self._group()) is None else group.status()

    def _group(self) -> RankGroup | None:
        return None if (loaded := self._loaded) is None else loaded.ranks

    @property
    def tokenizer(self) -> Tokenizer:
        return self.loaded.tokenizer

    @property
    def card(self) -> ModelCard:
        return self.loaded.card

    @property
    def max_model_len(self) -> int:
        return self.loaded.limits.max_model_len

    @property
    def vocab_size(self) -> int:
        return self.loaded.limits.vocab_size

    @property
    def default_sampling(self) -> dict[str, float]:
        return self.loaded.default_sampling

    @property
    def adapters(self) -> AdapterRegistry:
        return enabled(self.loaded.adapters)

    @property
    def images(self) -> ImageReader | None:
        """How images of prompts are read; None for a model that reads text alone."""
        return self.loaded.images

    @property
    def pooler(self) -> Pooler:
        return self.loaded.pooler

    # ---- requests --------------------------------------------------------------------------------------------------

    async def generate(
        self,
        prompt: list[int] | str,
        params: SamplingParams,
        request_id: str,
        terms: RequestTerms = ORDINARY,
    ) -> AsyncIterator[RequestOutput]:
        """Outputs of one request as they come, in the manner of `params.output_kind`.

        Raises RequestError, ContextLengthError or QueueFullError before the first output; StepError, EngineDeadError or,
        at the deadline of `terms`, DeadlineError at any time. Closing the iterator, or cancelling the task that reads it, aborts the request.
        """
        loaded = self.loaded
        prompt_text = terms.prompt_text
        if isinstance(prompt, str):
            prompt_text = prompt
            encode = loaded.tokenizer.encode
            prompt = await asyncio.to_thread(encode, prompt) if len(prompt) > _LONG_TEXT else encode(prompt)
        deadline = terms.deadline()
        form = await loaded.forms.wait(params)
        loaded = self.loaded
        request = admit(
            request_id, prompt, params, loaded.limits, loaded.tokenizer, loaded.core.scheduler.kv,
            prompt=prompt_text, priority=terms.priority, cache_salt=terms.cache_salt, form=form, adapter=terms.adapter, images=terms.images,
        )  # fmt: skip
        request.trace_headers = terms.trace_headers
        request.deadline = deadline
        if terms.kv_transfer is not None:
            await prepare_transfer(self._transfer, request, terms.kv_transfer)
        async with aclosing(self._outputs(request)) as outputs:
            async for output in outputs:
                yield output

    async def encode(
        self, prompt: list[int], params: PoolingParams, request_id: str, terms: RequestTerms = ORDINARY
    ) -> AsyncIterator[RequestOutput]:
        """One output, with what was read of the prompt in `pooled`. Raises what `generate` raises, and ends as it does."""
        loaded = self.loaded
        request = admit_reading(request_id, prompt, params, loaded.pooler, loaded.limits, loaded.core.scheduler.kv, terms)
        async with aclosing(self._outputs(request)) as outputs:
            async for output in outputs:
                if output.pooled is None:
                    raise StepError("the request was ended before it was read", reason="aborted")
                yield output

    async def beam_search(
        self,
        prompt: list[int],
        shown: SamplingParams,
        request_id: str,
        terms: RequestTerms = ORDINARY,
        *,
        beams: BeamSearchParams,
    ) -> AsyncIterator[RequestOutput]:
        """One output, with the best beams as its sequences. `shown`: how many log-probabilities, and how text is written.

        Raises what `generate` raises, and ends as it does. Trace headers are not used: rounds are no spans of a caller.
        """
        search = search_beams(self.loaded, self._outputs, prompt, beams, shown, request_id, self.config.max_num_seqs, terms)
        async with aclosing(search):
            async for output in search:
                output.prompt = terms.prompt_text
                yield output

    async def _outputs(self, request: Request) -> AsyncGenerator[RequestOutput, None]:
        await self._past_gate()
        listener = self._listeners.enlist(request, self.config, lambda: self.loaded, self._commands.put)
        finished = False
        try:
            while not finished:
                item = await listener.queue.get()
                if isinstance(item, HeadwayError):
                    finished = True
                    raise item
                finished = item.finished
                if item.failure is not None:
                    raise item.failure
                yield item
        finally:
            if finished:
                self._listeners.strike(listener)
            elif self._listeners.has(listener):
                # the id stays in use until the core has let go of it: what it still says is not for a later request
                self._commands.put(request.id)

    async def abort(self, request_id: str) -> None:
        """End a request; its reader gets a last output with finish_reason "abort"."""
        self._commands.put(request_id)

    async def reset_prefix_cache(self, *, running: bool = False, offloaded: bool = False) -> bool:
        """Forget all cached prefixes, between two steps; False, and no change, while any sequence holds blocks (`prefix_reset`)."""
        return await self.operations.reset_prefix_cache(running=running, offloaded=offloaded)

    # ---- operations ------------------------------------------------------------------------------------------------

    @property
    def request_ids(self) -> list[str]:
        """Of those that were taken and have not ended."""
        return self._listeners.ids

    async def between_steps(self, act: Callable[[EngineCore], T]) -> T:
        """Run `act` on the engine's thread, between two steps. Raises what it raises, and EngineDeadError when nobody will run it."""
        return await self._commands.do(lambda: act(self.loaded.core), lambda: self.loaded)

    def abort_all(self, core: EngineCore) -> None:
        """On the engine's thread: end all requests with finish_reason "abort"."""
        self._listeners.deliver(core.abort_all())

    def reload(self) -> None:
        """On the engine's thread, without requests: load the model anew."""
        old = self.loaded
        if old.kv_events is not None:
            old.kv_events.close()  # its address is free for the next one
        self._use(load_engine(self.config, observers=self.observers))
        old.close()

    async def _past_gate(self) -> None:
        """Wait while the engine is paused."""
        while self.gate.paused and not self.gate.asleep:
            _ = self.loaded
            await asyncio.sleep(POLL_SECONDS)
        self.gate.require_awake()

    # ---- the thread ------------------------------------------------------------------------------------------------

    def _observed(self) -> None:
        with self.observers.around_thread():
            self._run()

    def _run(self) -> None:
        try:
            self._load()
            while (failure := self._serve()) is not None:
                if not self.restarts.run(failure, partial(self._let_go, failure), self._commands.ended_within, self._load_again, self._on_attempt):
                    break
            self._end("stopped", "the engine was shut down")
        except HeadwayError as error:  # whoever started the engine reads it in `status`
            self.failure = error
            self._end("dead", f"{error.message} [{error.reason}]")
        except BaseException as error:
            _log.exception("engine core died")
            self._end("dead", f"{type(error).__name__}: {error}")

    def _load(self) -> None:
        self._use(load_engine(self.config, self._on_stage, self.observers))
        self._stage, self._progress = "ready", 1.0
        self._ready.set()

    def _use(self, loaded: LoadedEngine) -> None:
        try:
            self._transfer = start_transfer(self.config, loaded, self._commands.put, self.observers.on_transfer)
        except BaseException:
            loaded.close()
            raise
        self._loaded = loaded
        watch(loaded.ranks, self._commands.put, self._group)
        self.observers.on_ranks(RankStats({each.rank: True for each in self.ranks}))

    def _on_stage(self, stage: str, progress: float) -> None:
        self._stage, self._progress = "restarting" if self.restarts.now else stage, progress

    def _let_go(self, failure: RankError) -> None:
        """All open requests end with `failure`; no rank, no thread of the lost engine runs on, and nobody holds its memory."""
        _log.error("%s", failure.message)
        self._ready.clear()
        self.loaded.core.fail_all(failure)
        self.observers.on_step(NOTHING)
        self.observers.on_ranks(RankStats({each.rank: False for each in self.ranks}))
        lost = self.loaded
        self._stage, self._progress, self._loaded = "restarting", 0.0, None
        self._listeners.dismiss(failure)
        if self._transfer is not None:
            self._transfer.close()
        self._transfer = None
        lost.close()

    def _on_attempt(self, reason: str) -> None:
        self.observers.on_ranks(RankStats({}, restart=reason))

    def _load_again(self) -> None:
        gc.collect()  # an engine is a circle of objects, and the next one needs its memory
        release_free_memory()
        self.operations.forget_sleep()
        self._load()
        self.observers.on_restarted()

    def _serve(self) -> RankError | None:
        """Until somebody ends the engine, or a rank fails."""
        try:
            self._steps()
        except RankError as error:
            return bare(error)
        return None

    def _steps(self) -> None:
        while True:
            core = self.loaded.core
            for command in self._commands.pending(block=self.gate.closed or not core.has_work):
                if command is None:
                    self._listeners.deliver(core.abort_all())
                    return
                if isinstance(command, str):
                    self._listeners.end(command, core.abort(command))
                elif isinstance(command, Request):
                    core.add(command)
                else:
                    command()
            if core.has_work and not self.gate.closed:
                self._listeners.deliver(core.step())

    def _end(self, stage: str, reason: str) -> None:
        """Nobody will step any more: say so to all who wait."""
        self._error, self._stage = reason, stage
        self._listeners.dismiss(self._gone())
        self._ready.set()
        if self._loaded is not None:
            self.observers.on_step(NOTHING)
            if self._transfer is not None:
                self._transfer.close()
            self._loaded.close()
        self.observers.on_end()

    def _gone(self) -> EngineDeadError:
        if self._stage == "stopped":
            return EngineDeadError("the engine was shut down", reason="shutting_down")
        return EngineDeadError(f"the engine is dead: {self._error}", fix="Restart the server; the log has the traceback.")
