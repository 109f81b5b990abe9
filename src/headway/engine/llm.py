"""LLM: generation in the caller's own process and thread, with the names of `vllm.LLM`."""

from __future__ import annotations

import copy
import itertools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tqdm import tqdm

from headway.artifacts.template_source import template_text
from headway.engine.admission import admit, check_prompt
from headway.engine.arguments import engine_config
from headway.engine.beam_requests import begin, round_requests, row_of
from headway.engine.beam_search import BeamSearch, BeamSearchOutput, BeamSearchParams
from headway.engine.core import Observers
from headway.engine.images.talk_prompt import talk_prompt
from headway.engine.loading import load_engine
from headway.engine.lora.adapter import Adapter
from headway.engine.lora.prompt_adapters import LoRARequests, prompt_adapters
from headway.engine.operations.offline_operations import OfflineOperations
from headway.engine.outputs import OutputKind, RequestOutput
from headway.engine.pooling.offline_reading import OfflineReading
from headway.engine.prompt_forms import Prompt, checked_list, prompt_images, prompt_list, prompt_tokens
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request
from headway.engine.traced import traced
from headway.errors import NotBuiltError, RequestError
from headway.wire.template_variables import template_variables

# Methods of vllm.LLM that do not exist yet; asking for one says so instead of "no attribute".
_NOT_BUILT = frozenset(
    ["reward", "enqueue", "enqueue_chat", "wait_for_completion", "get_metrics", "collective_rpc", "apply_model"]
)

Message = Mapping[str, Any]


class LLM(OfflineReading, OfflineOperations):
    """`LLM("smollm2-135m-instruct").generate(["Hello"])`. Loads the model when created; keyword arguments are the flags
    of `headway serve` with underscores (docs/flags.md). Outputs come in the order of the prompts."""

    def __init__(
        self, model: str | os.PathLike[str], *, chat_template: str | os.PathLike[str] | None = None, observers: Observers | None = None,
        **arguments: Any,
    ):  # fmt: skip
        """`chat_template` is a file or the template itself, for `chat`, instead of the model's."""
        self.config = engine_config(model, arguments)
        if self.config.kv_transfer is not None:
            raise NotBuiltError("kv_transfer_config is for servers: an LLM neither sends nor pulls KV blocks", param="kv_transfer_config", fix="Use headway serve.")
        self._chat_template = template_text(None if chat_template is None else os.fspath(chat_template))
        self._engine = load_engine(self.config, observers=traced(self.config, observers))
        if self._engine.ranks is not None:
            weakref.finalize(self, self._engine.ranks.close)
        self._ids = itertools.count()

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_BUILT:
            raise NotBuiltError(f"LLM.{name} is not built yet", param=name)
        raise AttributeError(f"LLM has no attribute {name!r}")

    def get_tokenizer(self) -> Any:
        """The transformers tokenizer of the model."""
        return self._engine.tokenizer.hf()

    def get_default_sampling_params(self) -> SamplingParams:
        """What the model's generation_config.json asks for, else the neutral values."""
        return SamplingParams(**self._engine.default_sampling)

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool = True,
        lora_request: LoRARequests = None,
        priority: Sequence[int] | None = None,
    ) -> list[RequestOutput]:
        """Complete each prompt: a text, a list of token ids, {"prompt": ...} or {"prompt_token_ids": [...]}.

        One SamplingParams for all, or one for each prompt, and the same with LoRARequest. All prompts are checked before any is run. Raises RequestError,
        ContextLengthError. A sequence that fails alone ends with finish_reason "error" and `error` says why.
        """
        given = prompt_list(prompts)
        parsed = [prompt_tokens(p, self._engine.tokenizer) for p in given]
        params = self._params_for(parsed, sampling_params)
        adapters = prompt_adapters(lora_request, len(parsed), self._engine.adapters)
        ranks = [0] * len(parsed) if priority is None else checked_list("priority", priority, int)
        if len(ranks) != len(parsed):
            raise RequestError(f"priority has {len(ranks)} entries for {len(parsed)} prompts", param="priority")
        requests = [
            admit(
                str(next(self._ids)), ids, p, self._engine.limits, self._engine.tokenizer, self._engine.core.scheduler.kv,
                prompt=text, priority=ranks[i], form=self._engine.forms.form(p), adapter=adapters[i], images=prompt_images(given[i]),
            )
            for i, ((text, ids), p) in enumerate(zip(parsed, params, strict=True))
        ]
        with tqdm(total=len(requests), desc="Processed prompts", disable=not use_tqdm, dynamic_ncols=True) as bar:
            return self._run(requests, _Progress(bar).add)

    def beam_search(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: BeamSearchParams,
        *,
        lora_request: LoRARequests = None,
        use_tqdm: bool = False,
        concurrency_limit: int | None = None,
    ) -> list[BeamSearchOutput]:
        """The best continuations of each prompt (`beam_search`); `concurrency_limit` prompts at a time, None = all.

        As in vLLM, `tokens` and `text` of a beam begin with the prompt. Raises RequestError, ContextLengthError.
        """
        parsed = [prompt_tokens(p, self._engine.tokenizer)[1] for p in prompt_list(prompts)]
        for ids in parsed:
            check_prompt(ids, self._engine.limits)
        adapters = prompt_adapters(lora_request, len(parsed), self._engine.adapters)
        searches = [
            begin(ids, params, self._engine.limits, self._engine.tokenizer, self.config.max_num_seqs) for ids in parsed
        ]
        out: list[BeamSearchOutput] = []
        size = concurrency_limit or max(len(searches), 1)
        with tqdm(total=len(searches), desc="Beam search", disable=not use_tqdm, dynamic_ncols=True) as bar:
            for first in range(0, len(searches), size):
                out += self._search(searches[first : first + size], adapters[first : first + size])
                bar.update(len(out) - bar.n)
        return out

    def _search(self, searches: list[BeamSearch], adapters: list[Adapter | None]) -> list[BeamSearchOutput]:
        """Round by round, the beams of all prompts in one batch."""
        engine = self._engine
        errors: dict[int, str] = {}
        while going := [i for i, search in enumerate(searches) if i not in errors and not search.done]:
            rounds = {
                i: round_requests(
                    searches[i], f"beam-{next(self._ids)}", engine.limits, engine.tokenizer, engine.core.scheduler.kv, adapter=adapters[i]
                )
                for i in going
            }
            outputs = iter(self._run([request for requests in rounds.values() for request in requests]))
            for i, requests in rounds.items():
                mine = [next(outputs) for _ in requests]
                if failed := next((o.error for o in mine if o.error), None):
                    errors[i] = failed
                else:
                    searches[i].advance([row_of(o) for o in mine])
        found = [BeamSearchOutput([] if i in errors else s.best(), errors.get(i)) for i, s in enumerate(searches)]
        for output, adapter in zip(found, adapters, strict=True):
            for beam in output.sequences:
                beam.text = engine.tokenizer.decode(beam.tokens)
                beam.lora_request = None if adapter is None else adapter.request
        return found

    def _run(
        self, requests: list[Request], on_finished: Callable[[RequestOutput], None] = lambda output: None
    ) -> list[RequestOutput]:
        """Step until all are done; their last outputs in order. Whatever interrupts it leaves nothing running."""
        self._require_awake()
        core = self._engine.core
        done: dict[str, RequestOutput] = {}
        try:
            for request in requests:
                core.add(request)
            while core.has_work:
                for output in core.step():
                    if output.finished:
                        done[output.request_id] = output
                        on_finished(output)
        except BaseException:
            core.abort_all()
            raise
        return [done[r.id] for r in requests]

    def chat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool = True,
        lora_request: LoRARequests = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: list[dict[str, Any]] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> list[RequestOutput]:
        """Answer one conversation, or each of a list of them, through the model's chat template."""
        items = checked_list("messages", messages, Mapping, list, tuple)
        talks = [items] if items and isinstance(items[0], Mapping) else items
        variables = template_variables(chat_template_kwargs or {})
        tokenizer = self._engine.tokenizer
        prompts: list[Prompt] = []
        for talk in talks:
            prompts.append(
                talk_prompt(
                    self._engine.images, tokenizer, checked_list("messages", talk, Mapping), add_generation_prompt=add_generation_prompt,
                    continue_final_message=continue_final_message, chat_template=chat_template or self._chat_template, tools=tools, **variables,
                )
            )  # fmt: skip
        return self.generate(prompts, sampling_params, use_tqdm=use_tqdm, lora_request=lora_request)

    def _params_for(
        self, prompts: Sequence[object], given: SamplingParams | Sequence[SamplingParams] | None
    ) -> list[SamplingParams]:
        if given is None:
            given = self.get_default_sampling_params()
        many = [given] * len(prompts) if isinstance(given, SamplingParams) else checked_list("sampling_params", given, SamplingParams)
        if len(many) != len(prompts):
            raise RequestError(f"{len(many)} sampling_params for {len(prompts)} prompts", param="sampling_params")
        out = []
        for params in many:
            own = copy.copy(params)
            own.output_kind = OutputKind.FINAL_ONLY
            out.append(own)
        return out


class _Progress:
    """The bar of `generate`, with tokens per second so far."""

    def __init__(self, bar: Any):
        self._bar = bar
        self._read = self._written = 0

    def add(self, output: RequestOutput) -> None:
        self._read += len(output.prompt_token_ids)
        self._written += sum(len(c.token_ids) for c in output.outputs)
        elapsed = max(self._bar.format_dict["elapsed"], 1e-9)
        speeds = f"est. speed input: {self._read / elapsed:.2f} toks/s, output: {self._written / elapsed:.2f} toks/s"
        self._bar.set_postfix_str(speeds, refresh=False)
        self._bar.update(1)
