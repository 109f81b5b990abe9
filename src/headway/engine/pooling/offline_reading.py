"""OfflineReading: the methods of LLM that read prompts instead of continuing them."""

from __future__ import annotations

import abc
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from headway.engine.loading import LoadedEngine
from headway.engine.outputs import RequestOutput
from headway.engine.pooling.pooling_admission import admit_reading
from headway.engine.pooling.pooling_outputs import (
    ClassificationOutput,
    EmbeddingOutput,
    PoolingOutput,
    PoolingRequestOutput,
    ScoringOutput,
)
from headway.engine.pooling.pooling_params import PoolingParams, PoolingTask
from headway.engine.prompt_forms import Prompt, checked_list, prompt_list, prompt_tokens
from headway.engine.sequence import Request
from headway.errors import NotBuiltError, RequestError
from headway.wire.cosine import cosine

_log = logging.getLogger(__name__)
T = TypeVar("T")


class OfflineReading(abc.ABC):
    """Prompts have the forms that `LLM.generate` takes; outputs come in their order. A prompt that fails alone has an `error`."""

    _engine: LoadedEngine
    _ids: Iterator[int]
    _told = False

    @abc.abstractmethod
    def _run(self, requests: list[Request]) -> list[RequestOutput]:
        """Step until all are done; their last outputs in order."""

    def encode(
        self,
        prompts: Prompt | Sequence[Prompt],
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        *,
        pooling_task: PoolingTask = "embed",
        use_tqdm: bool = False,
        lora_request: object = None,
    ) -> list[PoolingRequestOutput[PoolingOutput]]:
        """The tensors of a task. Raises RequestError, ContextLengthError."""
        return self._read(prompts, pooling_params, pooling_task, PoolingOutput, lora_request)

    def embed(
        self,
        prompts: Prompt | Sequence[Prompt],
        *,
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        use_tqdm: bool = False,
        lora_request: object = None,
    ) -> list[PoolingRequestOutput[EmbeddingOutput]]:
        """One vector for each prompt."""
        return self._read(prompts, pooling_params, "embed", lambda data: EmbeddingOutput(data.tolist()), lora_request)

    def classify(
        self,
        prompts: Prompt | Sequence[Prompt],
        *,
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        use_tqdm: bool = False,
        lora_request: object = None,
    ) -> list[PoolingRequestOutput[ClassificationOutput]]:
        """Probabilities of the classes; RequestError (`task_unsupported`) for a model without a classification head."""
        return self._read(prompts, pooling_params, "classify", lambda data: ClassificationOutput(data.tolist()), lora_request)

    def score(
        self, data_1: Prompt | Sequence[Prompt], data_2: Prompt | Sequence[Prompt], *, use_tqdm: bool = False, lora_request: object = None
    ) -> list[PoolingRequestOutput[ScoringOutput]]:
        """How alike texts are: the cosine of their vectors. One text against each of many, or pairs."""
        queries, documents = prompt_list(data_1), prompt_list(data_2)
        if not documents:
            return []
        if len(queries) not in (1, len(documents)):
            raise RequestError(f"{len(queries)} texts against {len(documents)}: give one, or as many", param="data_1")
        read = self.encode([*queries, *documents], pooling_task="embed", lora_request=lora_request)
        firsts, seconds = read[: len(queries)], read[len(queries) :]
        return [_scored(first, second) for first, second in zip(firsts * (len(seconds) // len(firsts) or 1), seconds, strict=True)]

    def _read(
        self, prompts: Prompt | Sequence[Prompt], given: PoolingParams | Sequence[PoolingParams] | None, task: PoolingTask,
        shown: Callable[[torch.Tensor], T], lora_request: object,
    ) -> list[PoolingRequestOutput[T]]:  # fmt: skip
        if lora_request is not None:
            raise NotBuiltError("LoRA adapters are not built for reading prompts", param="lora_request", fix="Leave it out.")
        engine = self._engine
        parsed = [prompt_tokens(prompt, engine.tokenizer) for prompt in prompt_list(prompts)]
        one = given is None or isinstance(given, PoolingParams)
        params: list[Any] = [given or PoolingParams(task)] * len(parsed) if one else checked_list("pooling_params", given, PoolingParams)
        if len(params) != len(parsed):
            raise RequestError(f"{len(params)} pooling_params for {len(parsed)} prompts", param="pooling_params")
        if strange := next((each.task for each in params if each.task != task), None):
            raise RequestError(f"pooling_params ask for {strange}, and the task is {task}", param="pooling_params")
        if task != "classify" and not engine.pooler.is_trained and not self._told:
            self._told = True
            _log.warning("this model was trained to generate: its vectors are the hidden states of a language model, not trained embeddings")
        requests = [
            admit_reading(str(next(self._ids)), ids, each, engine.pooler, engine.limits, engine.core.scheduler.kv)
            for (_, ids), each in zip(parsed, params, strict=True)
        ]
        return [
            PoolingRequestOutput(o.request_id, None if o.pooled is None else shown(o.pooled), o.prompt_token_ids, o.num_cached_tokens, error=o.error)
            for o in self._run(requests)
        ]


def _scored(first: PoolingRequestOutput[PoolingOutput], second: PoolingRequestOutput[PoolingOutput]) -> PoolingRequestOutput[ScoringOutput]:
    output = PoolingRequestOutput[ScoringOutput](
        second.request_id, None, first.prompt_token_ids + second.prompt_token_ids, first.num_cached_tokens + second.num_cached_tokens,
        error=first.error or second.error,
    )  # fmt: skip
    if first.outputs is not None and second.outputs is not None:
        output.outputs = ScoringOutput(cosine(first.outputs.data.numpy(), second.outputs.data.numpy()))
    return output
