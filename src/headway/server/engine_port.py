"""What the server needs of an engine, of its tokenizer and of its metrics. `AsyncEngine`, `Tokenizer` and `EngineMetrics`
fit; so does a scripted fake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headway.artifacts.card import ModelCard
from headway.engine.beam_search import BeamSearchParams
from headway.engine.config import EngineConfig
from headway.engine.distributed.rank_group import RankStatus
from headway.engine.outputs import RequestOutput
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.recovery.restart import Restart
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from headway.engine.images.reader import ImageReader
    from headway.engine.lora.registry import AdapterRegistry
    from headway.engine.operations.engine_operations import EngineOperations


class TokenizerPort(Protocol):
    @property
    def special_ids(self) -> frozenset[int]: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def special_tokens(self) -> Mapping[str, str]: ...

    @property
    def chat_template(self) -> str | None: ...

    @property
    def chat_templates(self) -> Mapping[str, str]: ...

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str: ...

    def token_bytes(self, token_id: int, /) -> bytes: ...

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
    ) -> str: ...


class StatusPort(Protocol):
    @property
    def stage(self) -> str: ...

    @property
    def progress(self) -> float: ...

    @property
    def error(self) -> str | None: ...

    @property
    def steps(self) -> int: ...

    @property
    def requests(self) -> int: ...

    @property
    def running(self) -> int: ...

    @property
    def waiting(self) -> int: ...

    @property
    def kv_usage(self) -> float: ...

    @property
    def held(self) -> str | None: ...

    @property
    def restart(self) -> Restart | None: ...


class PoolerPort(Protocol):
    """How the model is read."""

    @property
    def hidden_size(self) -> int: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def generates(self) -> bool: ...

    @property
    def is_trained(self) -> bool: ...


class EnginePort(Protocol):
    @property
    def config(self) -> EngineConfig: ...

    @property
    def status(self) -> StatusPort: ...

    @property
    def tokenizer(self) -> TokenizerPort: ...

    @property
    def max_model_len(self) -> int: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def default_sampling(self) -> Mapping[str, Any]: ...

    def generate(
        self,
        prompt: list[int],
        params: SamplingParams,
        request_id: str,
        /,
        terms: RequestTerms,
    ) -> AsyncIterator[RequestOutput]: ...

    def beam_search(
        self,
        prompt: list[int],
        shown: SamplingParams,
        request_id: str,
        /,
        terms: RequestTerms,
        *,
        beams: BeamSearchParams,
    ) -> AsyncIterator[RequestOutput]: ...

    @property
    def ranks(self) -> Sequence[RankStatus]: ...

    @property
    def card(self) -> ModelCard: ...

    @property
    def images(self) -> ImageReader | None: ...

    @property
    def pooler(self) -> PoolerPort: ...

    def encode(self, prompt: list[int], params: PoolingParams, request_id: str, /, terms: RequestTerms) -> AsyncIterator[RequestOutput]: ...

    @property
    def adapters(self) -> AdapterRegistry: ...

    async def reset_prefix_cache(self, *, running: bool = False, offloaded: bool = False) -> bool: ...

    @property
    def operations(self) -> EngineOperations: ...


class MetricsPort(Protocol):
    def on_http(self, handler: str, method: str, status: int, seconds: float) -> None: ...

    def on_rejection(self, reason: str) -> None: ...

    def on_sleep(self, level: int | None) -> None: ...

    def render(self) -> bytes: ...
