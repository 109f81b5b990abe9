"""An engine that follows a script, with a byte tokenizer: everything the server sees of an engine, and no model."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch

from headway.engine.admission import AdmissionLimits
from headway.engine.config import EngineConfig
from headway.engine.distributed.rank_group import RankStatus
from headway.engine.outputs import CompletionOutput, Logprob, OutputKind, PositionLogprobs, RequestOutput
from headway.engine.pooling.pooler import Pooler
from headway.engine.pooling.pooling_admission import admit_reading
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.recovery.restart import Restart
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.errors import ContextLengthError, HeadwayError, RequestError
from headway.kvcache.manager import KVCacheManager

BOS, EOS, VOCAB = 256, 257, 258
HIDDEN = 8


class ByteTokenizer:
    """One token for each byte; `adds_bos` decides whether the empty text has a token."""

    special_ids = frozenset({BOS, EOS})
    vocab_size = VOCAB
    chat_template: str | None = "in Python"
    chat_templates = {"named": "in Python"}  # noqa: RUF012 - nobody changes it
    special_tokens = {"eos_token": "<eos>"}  # noqa: RUF012 - nobody changes it

    def __init__(self, adds_bos: bool = False):
        self.adds_bos = adds_bos
        self.encoded: list[int] = []  # lengths of the texts that were tokenized
        self.chat_kwargs: dict[str, Any] = {}

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        self.encoded.append(len(text))
        return ([BOS] if self.adds_bos and add_special_tokens else []) + list(text.encode())

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        pieces = (self.token_bytes(i) for i in ids if not (skip_special_tokens and i in self.special_ids))
        return b"".join(pieces).decode("utf-8", "replace")

    def token_bytes(self, token_id: int, /) -> bytes:
        return {BOS: b"<bos>", EOS: b"<eos>"}.get(token_id) or bytes([token_id])

    def render_chat(
        self,
        messages: list[dict[str, Any]],
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        chat_template: str | None = None,
        tools: list[dict[str, Any]] | None = None,
        documents: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> str:
        self.chat_kwargs = {"chat_template": chat_template, "tools": tools, "documents": documents, **kwargs}
        if messages[0]["role"] == "tool":
            raise RequestError("tool messages cannot come first", reason="chat_template_error", param="messages")
        text = "".join(f"[{m['role']}]{m['content']}\n" for m in messages)
        if continue_final_message:
            return text[:-1]
        return text + "[assistant]" if add_generation_prompt else text


@dataclass(frozen=True)
class Status:
    stage: str
    progress: float = 1.0
    error: str | None = None
    steps: int = 0
    requests: int = 0
    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    held: str | None = None
    restart: Restart | None = None


Script = Callable[[list[int], int], bytes]  # prompt ids, sequence index -> the bytes of the answer


class ScriptedEngine:
    """`hold`: each request stops after `hold_after` tokens until it is set. `fail`: raised after `fail_after` tokens."""

    def __init__(self, answer: bytes | Script = b"Hello, world", *, max_model_len: int = 200, **config: Any):
        self._script: Script = (lambda ids, index: answer) if isinstance(answer, bytes) else answer
        self.config = EngineConfig("tiny", **config)
        self.status = Status("ready")
        self.tokenizer = ByteTokenizer()
        self.max_model_len = max_model_len
        self.vocab_size = VOCAB
        self.default_sampling: dict[str, Any] = {}
        self.pooler = Pooler(HIDDEN)
        self.images = None  # it reads text alone
        self.ranks: tuple[RankStatus, ...] = ()
        self.card = SimpleNamespace(parameters=0)
        self.hold: asyncio.Event | None = None
        self.hold_after = 0
        self.fail: HeadwayError | None = None
        self.fail_after = 0
        self.active: set[str] = set()
        self.aborted: list[str] = []
        self.seen: list[tuple[list[int], SamplingParams, dict[str, Any]]] = []

    async def reset_prefix_cache(self, **_: bool) -> bool:
        return self.hold is None

    async def encode(self, prompt: list[int], params: PoolingParams, request_id: str, /, terms: RequestTerms) -> AsyncIterator[RequestOutput]:
        """Every row is as many ones as the prompt has tokens, then zeros."""
        request = admit_reading(request_id, prompt, params, self.pooler, AdmissionLimits(self.max_model_len, VOCAB, 20), KVCacheManager(9, 4), terms)
        assert request.readout is not None
        self.active.add(request_id)
        try:
            if self.hold is not None:
                await self.hold.wait()
            width = VOCAB if request.readout.reads_logits else HIDDEN
            row = (torch.arange(width) < len(prompt)).float()
            request.readout.take(0, row.repeat(len(prompt) if request.readout.all_rows else 1, 1), True)
            yield RequestOutput(request_id, None, prompt, finished=True, pooled=request.readout.result)
        finally:
            self.active.discard(request_id)

    async def generate(
        self,
        prompt: list[int],
        params: SamplingParams,
        request_id: str,
        /,
        terms: RequestTerms,
    ) -> AsyncIterator[RequestOutput]:
        self.seen.append((prompt, params, {"priority": terms.priority, "cache_salt": terms.cache_salt, "text": terms.prompt_text, "id": request_id}))
        if not prompt:
            raise RequestError("the prompt has no tokens", reason="empty_prompt", param="prompt")
        if len(prompt) >= self.max_model_len:
            raise ContextLengthError(
                f"This model's maximum context length is {self.max_model_len} tokens. However, your prompt contains {len(prompt)} tokens",
                param="input_tokens",
            )
        self._check_ids(prompt, params)
        self.active.add(request_id)
        finished = False
        try:
            async for output in self._steps(prompt, params, request_id):
                finished = output.finished
                yield output
        finally:
            self.active.discard(request_id)
            if not finished:
                self.aborted.append(request_id)

    def _check_ids(self, prompt: list[int], params: SamplingParams) -> None:
        for name, ids in (("prompt", prompt), ("logit_bias", params.logit_bias or ()), ("stop_token_ids", params.stop_token_ids or ())):
            for token in ids:
                if not 0 <= token < VOCAB:
                    raise RequestError(f"{name} holds token id {token}, which is out of range", param=name)

    async def _steps(self, prompt: list[int], params: SamplingParams, request_id: str) -> AsyncIterator[RequestOutput]:
        """One token for each sequence in each step."""
        room = self.max_model_len - len(prompt)
        limit = min(room, params.max_tokens or room)
        sequences = [_Sequence(self._script(prompt, i), i, limit, params) for i in range(params.n)]
        rows = None if params.prompt_logprobs is None else [None, *(_row(t, params.prompt_logprobs) for t in prompt[1:])]
        delta = params.output_kind is OutputKind.DELTA
        base = RequestOutput(request_id, None, prompt, prompt_logprobs=rows, num_cached_tokens=len(prompt) // 2)
        step = 0
        while any(not s.done for s in sequences):
            if self.fail is not None and step >= self.fail_after:
                raise self.fail
            if self.hold is not None and step >= self.hold_after:
                await self.hold.wait()
            await asyncio.sleep(0)
            step += 1
            told = [s.step() for s in sequences if not s.done]
            finished = all(s.done for s in sequences)
            if delta:
                yield replace(base, outputs=told, finished=finished)
                base = replace(base, prompt_logprobs=None)
        if not delta:
            yield replace(base, outputs=[s.all() for s in sequences], finished=True)


class _Sequence:
    def __init__(self, answer: bytes, index: int, limit: int, params: SamplingParams):
        self._tokens = [*answer, EOS]
        self._index = index
        self._limit = limit
        self._params = params
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parts: list[CompletionOutput] = []
        self.done = False

    def step(self) -> CompletionOutput:
        at = len(self._parts)
        token = self._tokens[at]
        ends = token == EOS
        self.done = ends or at + 1 == self._limit
        text = self._decoder.decode(b"" if ends else bytes([token]), final=self.done)
        logprobs = None if self._params.logprobs is None else [_row(token, self._params.logprobs)]
        finish = "stop" if ends else "length" if self.done else None
        part = CompletionOutput(self._index, text, [token], logprobs=logprobs, finish_reason=finish)
        self._parts.append(part)
        return part

    def all(self) -> CompletionOutput:
        rows = [row for part in self._parts for row in part.logprobs or []]
        return replace(
            self._parts[-1],
            text="".join(part.text for part in self._parts),
            token_ids=[t for part in self._parts for t in part.token_ids],
            logprobs=None if self._params.logprobs is None else rows,
        )


def _row(token: int, top: int) -> PositionLogprobs:
    """The chosen token first with -0.5, then the next ids, each one worse."""
    return {token: Logprob(-0.5, 1)} | {(token + i) % VOCAB: Logprob(-0.5 - i, i + 1) for i in range(1, top)}
