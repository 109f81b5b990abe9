"""A real engine whose forward pass follows a script: scheduler, cache, sampler, detokenizer and admission are the product's."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from headway.artifacts.card import ModelCard
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.engine import async_engine
from headway.engine.admission import AdmissionLimits
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import EngineCore, Observers
from headway.engine.distributed.rank_group import RankGroup
from headway.engine.loading import LoadedEngine
from headway.engine.memory_use import MemoryUse
from headway.engine.model_runner import StepResult
from headway.engine.pooling.pooler import Pooler
from headway.engine.pooling.reading import read_count, take_readouts
from headway.engine.sampler import Sampler
from headway.engine.scheduler import Scheduler, SchedulerLimits
from headway.engine.sequence import Sequence as Stream
from headway.engine.step_plan import StepPlan
from headway.engine.structured.config import StructuredConfig
from headway.engine.structured.forms import Forms
from headway.kvcache.manager import KVCacheManager
from headway.telemetry.metrics import EngineMetrics

CHATML = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_EOS, _BOS = "<eos>", "<bos>"
HIDDEN = 4  # numbers in a hidden state


def save_tokenizer(
    folder: Path, pieces: Sequence[str] = (), *, bos: bool = False, template: str | None = CHATML, sidecar: str | None = None
) -> None:
    """One token for each byte (ids 0 to 255), then <eos>, <bos> and `pieces`; `bos` puts <bos> in front of every text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Backend(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(_EOS, special=True), AddedToken(_BOS, special=True)])
    backend.add_tokens([AddedToken(piece, special=False, normalized=False) for piece in pieces])
    if bos:
        backend.post_processor = processors.TemplateProcessing(single=f"{_BOS} $A", special_tokens=[(_BOS, 257)])
    backend.save(str(folder / "tokenizer.json"))
    settings = {"eos_token": _EOS, "bos_token": _BOS} | ({"chat_template": template} if template is not None else {})
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if sidecar is not None:
        (folder / "chat_template.jinja").write_text(sidecar)


def scripted_tokenizer(pieces: Sequence[str] = (), **kwargs: Any) -> Tokenizer:
    folder = Path(mkdtemp())
    save_tokenizer(folder, pieces, **kwargs)
    card = ModelCard(
        reference=str(folder), path=folder, format="safetensors", architecture="LlamaForCausalLM", model_type="llama",
        config={"eos_token_id": 256}, generation_config={}, tensors={}, files=(), missing_files=(), parameters=0, weight_bytes=0,
        dtype_bytes={}, quantization=None, tokenizer="tokenizer.json", chat_template=True, licence=None, context_length=None,
    )  # fmt: skip
    return load_tokenizer(card)


class ScriptedModel:
    """`answer` is what every sequence says, then <eos> for ever; `gate`, when cleared, holds every forward pass.

    The scripted token has logit 10, all others 0.
    """

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.answer: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.before_pass: Callable[[StepPlan], None] = lambda plan: None
        self.passes = 0

    def say_pieces(self, *pieces: str) -> None:
        found = [self.tokenizer.backend.token_to_id(piece) for piece in pieces]
        assert None not in found, pieces
        self.answer = found

    def say_bytes(self, data: bytes) -> None:
        by_byte = {self.tokenizer.token_bytes(i): i for i in range(256)}
        self.answer = [by_byte[bytes([b])] for b in data]

    def clear(self, blocks: list[int]) -> None:
        """Nothing is stored."""

    def execute(self, plan: StepPlan) -> StepResult:
        self.gate.wait()
        self.before_pass(plan)
        self.passes += 1
        sampling = [c for c in plan.chunks if c.samples and c.sequence.request.readout is None]
        read = [c for c in plan.chunks if read_count(c)]
        logits = torch.zeros(len(sampling), self.tokenizer.vocab_size)
        for row, chunk in enumerate(sampling):
            logits[row, self._token(chunk.sequence)] = 10.0
        hidden = torch.ones(sum(map(read_count, read)), HIDDEN)
        return StepResult(logits, sampling, [], take_readouts(read, hidden, lambda rows: torch.zeros(len(rows), self.tokenizer.vocab_size)))

    def _token(self, sequence: Stream) -> int:
        return self.answer[sequence.num_output] if sequence.num_output < len(self.answer) else 256


def scripted_parts(
    model: ScriptedModel,
    metrics: EngineMetrics,
    *,
    num_blocks: int = 200,
    block_size: int = 4,
    budget: int = 64,
    max_model_len: int = 500,
    ranks: RankGroup | None = None,
) -> LoadedEngine:
    """What loading would bring."""
    kv = KVCacheManager(num_blocks, block_size)
    scheduler = Scheduler(SchedulerLimits(budget, 16), kv)
    core = EngineCore(
        scheduler, model, Sampler(model.tokenizer.vocab_size), model.tokenizer, Observers(metrics.on_step, metrics.on_request)
    )  # type: ignore[arg-type]  # fmt: skip
    limits = AdmissionLimits(max_model_len, model.tokenizer.vocab_size, 20)
    capacity = SimpleNamespace(num_blocks=num_blocks - 1)
    forms = Forms(model.tokenizer, model.tokenizer.vocab_size, StructuredConfig())
    card = SimpleNamespace(parameters=0)
    return LoadedEngine(core, card, model.tokenizer, limits, capacity, {}, MemoryUse(0, 0, None), forms, pooler=Pooler(HIDDEN), ranks=ranks)  # type: ignore[arg-type]


def scripted_engine(
    model: ScriptedModel, *, max_model_len: int = 500, metrics: EngineMetrics | None = None, num_blocks: int = 200, block_size: int = 4,
    budget: int = 64, **config: Any,
) -> tuple[AsyncEngine, EngineMetrics]:  # fmt: skip
    """A started engine around `model`, and the metrics that hear it."""
    metrics = metrics or EngineMetrics("tiny", max_model_len=max_model_len)
    loaded = scripted_parts(model, metrics, num_blocks=num_blocks, block_size=block_size, budget=budget, max_model_len=max_model_len)
    engine = AsyncEngine(EngineConfig("tiny", **config))
    with mock.patch.object(async_engine, "load_engine", return_value=loaded):
        engine.start()
        assert engine._ready.wait(20)
    return engine, metrics
