"""Prefills: engines that compute the prompts of a model whose other backends answer. They hand the KV blocks over among themselves; the
router only carries where they are (`kv_transfer_params`)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from headway.router.metrics.registry import RouterMetrics
from headway.router.upstream.backend import Backend
from headway.router.upstream.connections import Connections
from headway.router.upstream.exchange import Times, TryError, open_exchange
from headway.router.upstream.health import BackendState, BackendStates, note_failure, note_success
from headway.router.upstream.pool import Pool
from headway.router.upstream.reliability import Reliability

if TYPE_CHECKING:
    from headway.router.upstream.asking import Question

_log = logging.getLogger(__name__)
_PARAMS: Final = "kv_transfer_params"
_ANSWER_LIMIT: Final = 1 << 20
_REST_SECONDS: Final = 5.0  # after a failure, longer with each
# What shapes an answer that nobody reads, or forbids one of a single token.
_NOT_SENT: Final = ("stream_options", "max_completion_tokens", "min_tokens", "n", "best_of", "echo", "logprobs", "top_logprobs", "prompt_logprobs")


class Prefills:
    """Of one model. Whatever fails here only costs time: the backend then computes the prompt itself."""

    def __init__(self, model: str, backends: tuple[Backend, ...], connections: Connections, states: BackendStates, metrics: RouterMetrics):
        self._model = model
        self._pool = Pool(backends, states)
        self._connections = connections
        self._metrics = metrics

    async def handed_over(self, question: Question, payload: bytes, limits: Reliability, seconds: float) -> bytes:
        """`payload`, with the place of its prompt's blocks where a prefill engine computed it within `seconds`."""
        picked = self._pool.pick()
        body: dict[str, Any] = orjson.loads(payload)
        if picked is None or not _is_one_prompt(body):
            return payload
        backend, state = picked
        params: Mapping[str, Any] | None = None
        if state.ejected(time.monotonic()):
            outcome = "resting"
        else:
            try:
                params = await self._prefill(question, backend, body, limits, seconds)
                outcome = "ok" if params is not None else "nothing_kept"
                self._note(backend, state, None)
            except TryError as error:
                outcome = error.outcome
                self._note(backend, state, outcome)
        self._metrics.count("headway_prefills", self._model, backend.alias, outcome)
        return payload if params is None else orjson.dumps({**body, _PARAMS: params})

    async def _prefill(self, question: Question, backend: Backend, body: Mapping[str, Any], limits: Reliability, seconds: float) -> Mapping[str, Any] | None:
        """Raises TryError."""
        first = {name: value for name, value in body.items() if name not in _NOT_SENT}
        first |= {"stream": False, "max_tokens": 1, _PARAMS: {"do_remote_decode": True, "do_remote_prefill": False}}
        head = min(each for each in (limits.first_byte, limits.per_try, seconds) if each is not None)
        until = asyncio.get_running_loop().time() + head if head < float("inf") else None
        times = Times(min(limits.connect, head), None if until is None else head, limits.idle, until)
        exchange = await open_exchange(self._connections, backend, question.url(backend), orjson.dumps(first), question.headers(backend), times)
        raw = await exchange.read(_ANSWER_LIMIT)
        if exchange.status != 200:
            raise TryError(f"status_{exchange.status}")
        try:
            answer = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise TryError("bad_body") from None
        params = answer.get(_PARAMS) if isinstance(answer, dict) else None
        return params if isinstance(params, dict) else None

    def _note(self, backend: Backend, state: BackendState, failure: str | None) -> None:
        """A refused request (4xx) says nothing about the engine; the backend tells the client what is wrong with it."""
        if failure is None:
            note_success(state)
            if state.failing:
                state.failing = False
                _log.info("prefill engine %s answers again", backend.alias)
        elif failure == "status_429" or not failure.startswith("status_4"):
            note_failure(state, self._pool.states, 1, _REST_SECONDS, 100)
            if not state.failing:
                state.failing = True
                _log.warning("prefill engine %s fails (%s): its prompts are computed by the backends; more is counted in headway_prefills", backend.alias, failure)


def _is_one_prompt(body: Mapping[str, Any]) -> bool:
    """A chat or a completion of one prompt, whose blocks nobody has arranged for yet."""
    prompt = body.get("prompt")
    one = isinstance(prompt, str) or (isinstance(prompt, list) and all(isinstance(token, int) for token in prompt))
    return ("messages" in body or one) and not body.get(_PARAMS) and not body.get("use_beam_search")
