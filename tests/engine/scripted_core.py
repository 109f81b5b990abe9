"""An engine core whose model follows a script: everything is real but the forward pass."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from functools import cache
from typing import Any

import torch

from headway.engine.admission import AdmissionLimits, admit
from headway.engine.config import EngineConfig
from headway.engine.core import EngineCore, Observers
from headway.engine.logits_processor import LogitsProcessor
from headway.engine.model_runner import StepResult
from headway.engine.outputs import RequestOutput
from headway.engine.processor_loading import make_processors
from headway.engine.processor_rows import ProcessorRows
from headway.engine.sampler import Sampler
from headway.engine.sampling_params import SamplingParams
from headway.engine.scheduler import Scheduler, SchedulerLimits
from headway.engine.sequence import Request, Sequence
from headway.engine.step_plan import StepPlan
from headway.engine.structured.config import StructuredConfig
from headway.engine.structured.forms import Forms
from headway.kvcache.manager import KVCacheManager
from headway.telemetry.stats import RequestStats, StepStats
from tests.engine.byte_tokenizer import EOS, VOCAB, byte_tokenizer, ids

Script = Callable[[Sequence], int]


def say(text: str | bytes) -> Script:
    """Answer with these bytes, then EOS for ever."""
    script = [*(ids(text) if isinstance(text, str) else raw_ids(text)), EOS]
    return lambda sequence: script[min(sequence.num_output, len(script) - 1)]


def new_forms() -> Forms:
    return Forms(byte_tokenizer(), VOCAB, StructuredConfig())


byte_forms = cache(new_forms)  # shared by the tests: its process starts with the first grammar and ends with them


def raw_ids(data: bytes) -> list[int]:
    by_byte = {byte_tokenizer().token_bytes(i): i for i in range(256)}
    return [by_byte[bytes([b])] for b in data]


class ScriptedRunner:
    """The scripted token gets logit 10, all others 0. `fail_when` raises for steps that hold such a sequence."""

    def __init__(self, script: Script):
        self.script = script
        self.fail_when: Callable[[Sequence], bool] = lambda sequence: False
        self.calls = 0
        self.cleared: list[int] = []

    def clear(self, blocks: list[int]) -> None:
        self.cleared += blocks

    def execute(self, plan: StepPlan) -> StepResult:
        self.calls += 1
        for chunk in plan.chunks:
            if self.fail_when(chunk.sequence):
                raise FloatingPointError("injected")
        sampling = [c for c in plan.chunks if c.samples]
        logits = torch.zeros(len(sampling), VOCAB)
        for i, chunk in enumerate(sampling):
            logits[i, self.script(chunk.sequence)] = 10.0
        return StepResult(logits, sampling, [])


class ScriptedCore:
    def __init__(
        self, script: Script, *, num_blocks: int = 200, block_size: int = 4, budget: int = 64, max_model_len: int = 500,
        processors: Many[type[LogitsProcessor]] = (), **limits: Any,
    ):  # fmt: skip
        """`limits` are those of SchedulerLimits."""
        self.now = 0.0
        self.kv = KVCacheManager(num_blocks, block_size)
        self.runner = ScriptedRunner(script)
        self.requests: list[RequestStats] = []
        self.steps: list[StepStats] = []
        self.limits = AdmissionLimits(max_model_len, VOCAB, 20, tuple(processors))
        made = make_processors(processors, EngineConfig("scripted"))
        self.core = EngineCore(
            Scheduler(SchedulerLimits(budget, **({"max_num_seqs": 16} | limits)), self.kv), self.runner, Sampler(VOCAB, processors=ProcessorRows(made) if made else None), byte_tokenizer(),
            Observers(self.steps.append, self.requests.append), lambda: self.now,
        )  # type: ignore[arg-type]  # fmt: skip

    def admit(self, name: str, prompt: str | list[int], *, priority: int = 0, **params: object) -> Request:
        prompt_ids = ids(prompt) if isinstance(prompt, str) else prompt
        params.setdefault("temperature", 0)
        asked = SamplingParams(**params)  # type: ignore[arg-type]
        return admit(name, prompt_ids, asked, self.limits, byte_tokenizer(), self.kv, priority=priority, form=byte_forms().form(asked))

    def add(self, name: str, prompt: str | list[int] = "Hi", *, deadline: float | None = None, **params: Any) -> Request:
        request = self.admit(name, prompt, **params)
        request.deadline = deadline
        self.core.add(request)
        return request

    def run(self) -> dict[str, list[RequestOutput]]:
        """Step until nothing is left; the outputs of each request in order."""
        out: dict[str, list[RequestOutput]] = {}
        while self.core.has_work:
            for output in self.core.step():
                out.setdefault(output.request_id, []).append(output)
        self.check_empty()
        return out

    def check_empty(self) -> None:
        assert self.kv.pool.num_free == self.kv.pool.num_blocks - 1
        assert self.core.num_requests == 0
        assert not self.core.scheduler.has_work
