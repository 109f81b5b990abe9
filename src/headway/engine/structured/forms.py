"""Forms: the compiled forms of one engine, each compiled once, away from the event loop and from the thread that steps."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import torch

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.sampling_params import SamplingParams
from headway.engine.structured.compile_service import CompileService, Refusal
from headway.engine.structured.config import StructuredConfig
from headway.engine.structured.request import INVALID, PARAM, TOO_LARGE, UNSUPPORTED, Constraint, StructuredOutputs
from headway.engine.structured.schema_faults import fault, too_many
from headway.engine.structured.schema_parts import schemas_of
from headway.engine.structured.schema_support import left_out
from headway.engine.structured.vocabulary import check_exact, control_ids, grammar_vocabulary, without
from headway.errors import EngineDeadError, QueueFullError, RequestError

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar

    from headway.engine.structured.form import Form

_AT_ONCE: Final = 4  # grammars that are compiled at the same time
_MOST_WAITING: Final = 256
_MOST_KEPT: Final = 1024
_MOST_KEPT_BYTES: Final = 256 << 20

_Key = tuple[Constraint, bool]


class Forms:
    """Safe to use from several threads. Of what was compiled, the most recently used is kept, up to a number and a size."""

    def __init__(self, tokenizer: Tokenizer, vocab_size: int, config: StructuredConfig):
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._config = config
        self._lock = threading.Lock()  # guards the three below
        self._known: OrderedDict[_Key, Future[CompiledGrammar | Refusal]] = OrderedDict()
        self._waiting = 0
        self._bytes = 0
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="GrammarCompiler", initializer=_step_back)
        self._starting = threading.Lock()
        self._service: CompileService | None = None
        self._special: frozenset[int] = frozenset()  # ids that are part of no form
        self._controls: list[int] = []  # ids that are part of no JSON
        self._masks: dict[tuple[bool, bool], torch.Tensor | None] = {(False, False): None}

    def form(self, params: SamplingParams) -> Form | None:
        """Blocks until it is compiled; None when the request asks for no form. Raises RequestError, NotBuiltError, QueueFullError."""
        asked: StructuredOutputs | None = params.structured_outputs
        return None if asked is None else self._form(params, asked, self._submit(asked).result())

    async def wait(self, params: SamplingParams) -> Form | None:
        """`form`, without holding up the event loop."""
        asked: StructuredOutputs | None = params.structured_outputs
        return None if asked is None else self._form(params, asked, await asyncio.wrap_future(_unowned(self._submit(asked))))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._service is not None:
            self._service.close()

    def _form(self, params: SamplingParams, asked: StructuredOutputs, outcome: CompiledGrammar | Refusal) -> Form:
        from headway.engine.structured.form import Form

        if isinstance(outcome, Refusal):
            raise RequestError(f"{asked.param}: {outcome.message}", reason=outcome.reason, param=asked.param)
        starts_after = () if self._config.enable_in_reasoning else asked.starts_after
        form = Form(outcome, self._special, self._allowed(_is_json(asked.constraint), params.ignore_eos), starts_after)
        if params.allowed_token_ids is not None and not starts_after and not form.begin().may_begin_with(params.allowed_token_ids):
            raise RequestError("allowed_token_ids has no token that the form could begin with: together they allow nothing", reason=INVALID, param="allowed_token_ids")
        return form

    def _allowed(self, is_json: bool, ignore_eos: bool) -> torch.Tensor | None:
        """Made once for each of the four cases."""
        if (is_json, ignore_eos) not in self._masks:
            ends = [i for i in self._tokenizer.eos_ids if i < self._vocab_size] if ignore_eos else []
            out = [*ends, *(self._controls if is_json else [])]
            self._masks[is_json, ignore_eos] = without(out, self._vocab_size) if out else None
        return self._masks[is_json, ignore_eos]

    def _submit(self, asked: StructuredOutputs) -> Future[CompiledGrammar | Refusal]:
        key = (asked.constraint, not (asked.disable_any_whitespace or self._config.disable_any_whitespace))
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
            if self._waiting >= _MOST_WAITING:
                raise QueueFullError(f"{self._waiting} grammars wait to be compiled, the limit is {_MOST_WAITING}", param=PARAM)
            self._waiting += 1
            future = self._known[key] = self._threads.submit(self._compile, *key)
        future.add_done_callback(self._settled(key))
        return future

    def _settled(self, key: _Key) -> Callable[[Future[CompiledGrammar | Refusal]], None]:
        def settle(future: Future[CompiledGrammar | Refusal]) -> None:
            with self._lock:
                self._waiting -= 1
                if future.cancelled() or future.exception() is not None:  # not the constraint's fault: the next one tries again
                    self._known.pop(key, None)
                    return
                self._bytes += _size(future)
                while len(self._known) > _MOST_KEPT or self._bytes > _MOST_KEPT_BYTES:
                    oldest = next((k for k, f in self._known.items() if f.done() and k != key), None)
                    if oldest is None:
                        return
                    self._bytes -= _size(self._known.pop(oldest))

        return settle

    def _compile(self, constraint: Constraint, blanks: bool) -> CompiledGrammar | Refusal:
        if (refusal := _refusal(constraint)) is not None:
            return refusal
        with self._starting:
            if self._service is None:
                check_exact(self._tokenizer)
                service = CompileService(lambda: grammar_vocabulary(self._tokenizer, self._vocab_size))
                self._special = frozenset(service.info().special_token_ids)
                self._controls = control_ids(self._tokenizer, self._vocab_size)
                self._service = service
        return self._service.compile(constraint, blanks)


def _step_back() -> None:
    """Answers that run come first."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)


def _is_json(constraint: Constraint) -> bool:
    """Whether no control characters belong to the form but line ends. A structural tag may have some of its own."""
    return constraint.kind in ("json", "json_object") or (constraint.kind == "structural_tag" and "\\t" not in constraint.text and "\\u00" not in constraint.text)


def _refusal(constraint: Constraint) -> Refusal | None:
    if constraint.kind not in ("json", "structural_tag"):
        return None
    schemas = list(schemas_of(constraint.kind, json.loads(constraint.text)))
    for finds, reason in ((fault, INVALID), (too_many, TOO_LARGE)):
        if (found := next(filter(None, map(finds, schemas)), None)) is not None:
            return Refusal(found, reason)
    keyword = next(filter(None, map(left_out, schemas)), None)
    return None if keyword is None else Refusal(f"the schema uses {keyword}, which is not supported. Leave it out, and check answers for it", UNSUPPORTED)


def _size(future: Future[CompiledGrammar | Refusal]) -> int:
    outcome = future.result()
    return 0 if isinstance(outcome, Refusal) else outcome.memory_size_bytes


def _unowned(future: Future[CompiledGrammar | Refusal]) -> Future[CompiledGrammar | Refusal]:
    """A future that may be cancelled, as that of a client that leaves is, without ending the work that others wait for."""
    own: Future[CompiledGrammar | Refusal] = Future()

    def pass_on(done: Future[CompiledGrammar | Refusal]) -> None:
        if not own.set_running_or_notify_cancel():
            return
        if done.cancelled():
            own.set_exception(EngineDeadError("the engine was shut down", reason="shutting_down"))
        elif (error := done.exception()) is not None:
            own.set_exception(error)
        else:
            own.set_result(done.result())

    future.add_done_callback(pass_on)
    return own
