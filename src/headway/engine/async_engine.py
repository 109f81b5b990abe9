"""AsyncEngine: the engine core on a thread of its own, for servers.

The thread loads the model, then steps. Callers live on event loops and speak to it through one queue of commands; what
a step produced goes back to each loop in one call. Nothing else crosses the border.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import aclosing
from typing import TypeVar

from headway.artifacts.card import ModelCard
from headway.artifacts.tokenizer import Tokenizer
from headway.engine.admission import admit
from headway.engine.async_beam_search import search_beams
from headway.engine.beam_search import BeamSearchParams
from headway.engine.config import EngineConfig
from headway.engine.core import EngineCore, Observers
from headway.engine.engine_status import EngineStatus
from headway.engine.listener import Listener
from headway.engine.loading import LoadedEngine, load_engine
from headway.engine.lora.registry import AdapterRegistry, enabled
from headway.engine.operations.engine_operations import EngineOperations
from headway.engine.operations.gate import Gate
from headway.engine.outputs import RequestOutput
from headway.engine.pooling.pooler import Pooler
from headway.engine.pooling.pooling_admission import admit_reading
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.request_terms import ORDINARY, RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request
from headway.errors import EngineDeadError, HeadwayError, LoadingError, QueueFullError, RequestError, StepError
from headway.telemetry.stats import NOTHING

_log = logging.getLogger(__name__)
T = TypeVar("T")
Command = Request | str | Callable[[], None] | None  # add | abort by id | do between two steps | stop
_POLL_SECONDS = 0.005
_LONG_TEXT = 4096  # characters; longer texts are tokenized off the event loop


class AsyncEngine:
    """See `generate`. Raises LoadingError before the model is ready and EngineDeadError after the core has stopped."""

    def __init__(self, config: EngineConfig, observers: Observers | None = None):
        self.config = config
        self.observers = observers or Observers()
        self._loaded: LoadedEngine | None = None
        self._stage, self._progress = "resolving", 0.0
        self._error: str | None = None
        self.failure: HeadwayError | None = None  # why loading failed
        self.gate = Gate()
        self.operations = EngineOperations(self)
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._listeners: dict[str, Listener] = {}
        self._lock = threading.Lock()  # guards _listeners
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
        if self._loaded is None:
            raise EngineDeadError(self._error or "the engine stopped while loading")

    async def shutdown(self) -> None:
        """Abort what runs and end the thread."""
        if self._thread.is_alive():
            self._commands.put(None)
            while self._thread.is_alive():
                await asyncio.sleep(0.01)

    @property
    def status(self) -> EngineStatus:
        if self._loaded is None:
            return EngineStatus(self._stage, self._progress, self._error, 0)
        core = self._loaded.core
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
        if self._loaded is None or self._stage != "ready":
            raise LoadingError(f"the model is loading (stage {self._stage}, {self._progress:.0%}); try again shortly")
        return self._loaded

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
            prompt=prompt_text, priority=terms.priority, cache_salt=terms.cache_salt, form=form, adapter=terms.adapter,
        )  # fmt: skip
        request.trace_headers = terms.trace_headers
        request.deadline = deadline
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
        listener = self._enlist(request)
        self._commands.put(request)
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
                self._strike(listener)
            else:  # the id stays in use until the core has let go of it: what it still says is not for a later request
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
        with self._lock:
            return list(self._listeners)

    async def between_steps(self, act: Callable[[EngineCore], T]) -> T:
        """Run `act` on the engine's thread, between two steps. Raises what it raises, and EngineDeadError when nobody will run it."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(act(self.loaded.core))
            except Exception as error:
                done.set_exception(error)

        self._commands.put(run)
        while not done.done():
            _ = self.loaded
            await asyncio.sleep(_POLL_SECONDS)
        return done.result()

    def abort_all(self, core: EngineCore) -> None:
        """On the engine's thread: end all requests with finish_reason "abort"."""
        self._deliver(core.abort_all())

    def reload(self) -> None:
        """On the engine's thread, without requests: load the model anew."""
        fresh, old = load_engine(self.config, observers=self.observers), self.loaded
        self._loaded = fresh
        old.forms.close()

    async def _past_gate(self) -> None:
        """Wait while the engine is paused."""
        while self.gate.paused and not self.gate.asleep:
            _ = self.loaded
            await asyncio.sleep(_POLL_SECONDS)

    def _enlist(self, request: Request) -> Listener:
        self.gate.require_awake()
        with self._lock:
            if self._stage in ("dead", "stopped"):
                raise self._gone()
            if request.id in self._listeners:
                raise RequestError(f"request id {request.id!r} is in use", param="request_id")
            if not request.continues:
                self._check_queue()
            listener = self._listeners[request.id] = Listener(asyncio.get_running_loop(), request)
        return listener

    def _strike(self, listener: Listener) -> None:
        with self._lock:
            if self._listeners.get(listener.request.id) is listener:
                del self._listeners[listener.request.id]

    def _check_queue(self) -> None:
        """Raises QueueFullError when as much is waiting as may wait. Waiting = not scheduled yet, here or in the core."""
        config = self.config
        if config.max_num_queued_reqs is None and config.max_num_queued_tokens is None:
            return
        waiting = [len(x.request.prompt_token_ids) for x in self._listeners.values() if x.request.sequences[0].num_cached < 0]
        for name, limit, found, unit in (
            ("max_num_queued_reqs", config.max_num_queued_reqs, len(waiting), "requests"),
            ("max_num_queued_tokens", config.max_num_queued_tokens, sum(waiting), "prompt tokens"),
        ):
            if limit is not None and found >= limit:
                raise QueueFullError(
                    f"the queue is full: {found} {unit} wait, the limit is {limit}", param=name, fix="Retry later or elsewhere."
                )

    # ---- the thread ------------------------------------------------------------------------------------------------

    def _observed(self) -> None:
        with self.observers.around_thread():
            self._run()

    def _run(self) -> None:
        try:
            self._loaded = load_engine(self.config, self._on_stage, self.observers)
            self._stage, self._progress = "ready", 1.0
            self._ready.set()
            self._serve()
            self._end("stopped", "the engine was shut down")
        except HeadwayError as error:  # whoever started the engine reads it in `status`
            self.failure = error
            self._end("dead", f"{error.message} [{error.reason}]")
        except BaseException as error:
            _log.exception("engine core died")
            self._end("dead", f"{type(error).__name__}: {error}")

    def _on_stage(self, stage: str, progress: float) -> None:
        self._stage, self._progress = stage, progress

    def _serve(self) -> None:
        while True:
            core = self.loaded.core
            for command in self._pending(block=self.gate.closed or not core.has_work):
                if command is None:
                    self._deliver(core.abort_all())
                    return
                if isinstance(command, str):
                    with self._lock:
                        listener = self._listeners.pop(command, None)
                    ended = core.abort(command)
                    if listener is not None and ended is not None:
                        _post(listener.loop, [(listener, ended)])
                elif isinstance(command, Request):
                    core.add(command)
                else:
                    command()
            if core.has_work and not self.gate.closed:
                self._deliver(core.step())

    def _pending(self, *, block: bool) -> list[Command]:
        commands = [self._commands.get()] if block else []
        with contextlib.suppress(queue.Empty):
            while True:
                commands.append(self._commands.get_nowait())
        return commands

    def _deliver(self, outputs: list[RequestOutput]) -> None:
        """Hand outputs to their loops, one wake-up for each loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Listener, RequestOutput | HeadwayError]]] = {}
        with self._lock:
            for output in outputs:
                listener = self._listeners.get(output.request_id)
                if listener is not None:
                    by_loop.setdefault(listener.loop, []).append((listener, output))
        for loop, items in by_loop.items():
            _post(loop, items)

    def _end(self, stage: str, reason: str) -> None:
        """Nobody will step any more: say so to all who wait. The lock keeps a request from enlisting in between."""
        with self._lock:
            self._error, self._stage = reason, stage
            listeners = list(self._listeners.values())
        self._ready.set()
        for listener in listeners:
            _post(listener.loop, [(listener, self._gone())])
        if self._loaded is not None:
            self.observers.on_step(NOTHING)
            self._loaded.forms.close()
        self.observers.on_end()

    def _gone(self) -> EngineDeadError:
        if self._stage == "stopped":
            return EngineDeadError("the engine was shut down", reason="shutting_down")
        return EngineDeadError(f"the engine is dead: {self._error}", fix="Restart the server; the log has the traceback.")


def _post(loop: asyncio.AbstractEventLoop, items: list[tuple[Listener, RequestOutput | HeadwayError]]) -> None:
    def put() -> None:
        for listener, item in items:
            listener.queue.put_nowait(item)

    with contextlib.suppress(RuntimeError):  # the loop was closed: nobody is left to hear it
        loop.call_soon_threadsafe(put)
