"""LLM: generation in the caller's own process and thread, with the names of `vllm.LLM`."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tqdm import tqdm

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.admission import admit
from headway.engine.arguments import engine_config
from headway.engine.core import Observers
from headway.engine.loading import load_engine
from headway.engine.outputs import OutputKind, RequestOutput
from headway.engine.sampling_params import SamplingParams
from headway.engine.traced import traced
from headway.errors import NotBuiltError, RequestError
from headway.wire.messages import plain_messages
from headway.wire.template_variables import template_variables

# Methods of vllm.LLM that do not exist yet; asking for one says so instead of "no attribute".
_NOT_BUILT = frozenset(
    ["beam_search", "encode", "embed", "classify", "score", "reward", "enqueue", "enqueue_chat", "wait_for_completion", "get_metrics", "sleep", "wake_up", "start_profile", "stop_profile", "collective_rpc", "apply_model"]
)

Prompt = str | list[int] | Mapping[str, Any]
Message = Mapping[str, Any]


class LLM:
    """`LLM("smollm2-135m-instruct").generate(["Hello"])`. Loads the model when created; keyword arguments are the flags
    of `headway serve` with underscores (docs/flags.md). Outputs come in the order of the prompts."""

    def __init__(self, model: str | os.PathLike[str], *, observers: Observers | None = None, **arguments: Any):
        self.config = engine_config(model, arguments)
        self._engine = load_engine(self.config, observers=traced(self.config, observers))
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

    def reset_prefix_cache(self) -> bool:
        """Forget all cached prefixes; False if something is running."""
        return self._engine.core.scheduler.kv.pool.reset()

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool = True,
        lora_request: object = None,
        priority: Sequence[int] | None = None,
    ) -> list[RequestOutput]:
        """Complete each prompt: a text, a list of token ids, {"prompt": ...} or {"prompt_token_ids": [...]}.

        One SamplingParams for all, or one for each prompt. All prompts are checked before any is run. Raises RequestError,
        ContextLengthError. A sequence that fails alone ends with finish_reason "error" and `error` says why.
        """
        if lora_request is not None:
            raise NotBuiltError("LoRA adapters are not built yet", param="lora_request")
        parsed = [_parse(p, self._engine.tokenizer) for p in _as_list(prompts)]
        params = self._params_for(parsed, sampling_params)
        ranks = [0] * len(parsed) if priority is None else _sequence("priority", priority, int)
        if len(ranks) != len(parsed):
            raise RequestError(f"priority has {len(ranks)} entries for {len(parsed)} prompts", param="priority")
        requests = [
            admit(
                str(next(self._ids)), ids, p, self._engine.limits, self._engine.tokenizer, self._engine.core.scheduler.kv,
                prompt=text, priority=ranks[i],
            )
            for i, ((text, ids), p) in enumerate(zip(parsed, params, strict=True))
        ]
        core = self._engine.core
        for request in requests:
            core.add(request)
        done: dict[str, RequestOutput] = {}
        with tqdm(total=len(requests), desc="Processed prompts", disable=not use_tqdm, dynamic_ncols=True) as bar:
            try:
                while core.has_work:
                    for output in core.step():
                        if output.finished:
                            done[output.request_id] = output
                            _advance(bar, list(done.values()))
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
        lora_request: object = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: list[dict[str, Any]] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> list[RequestOutput]:
        """Answer one conversation, or each of a list of them, through the model's chat template."""
        items = _sequence("messages", messages, Mapping, list, tuple)
        talks = [items] if items and isinstance(items[0], Mapping) else items
        variables = template_variables(chat_template_kwargs or {})
        tokenizer = self._engine.tokenizer
        prompts: list[Prompt] = []
        for talk in talks:
            text = tokenizer.render_chat(
                plain_messages(_sequence("messages", talk, Mapping)), add_generation_prompt=add_generation_prompt, continue_final_message=continue_final_message,
                chat_template=chat_template, tools=tools, **variables,
            )  # fmt: skip
            prompts.append({"prompt": text, "prompt_token_ids": tokenizer.encode(text, add_special_tokens=False)})
        return self.generate(prompts, sampling_params, use_tqdm=use_tqdm, lora_request=lora_request)

    def _params_for(
        self, prompts: Sequence[object], given: SamplingParams | Sequence[SamplingParams] | None
    ) -> list[SamplingParams]:
        if given is None:
            given = self.get_default_sampling_params()
        many = [given] * len(prompts) if isinstance(given, SamplingParams) else _sequence("sampling_params", given, SamplingParams)
        if len(many) != len(prompts):
            raise RequestError(f"{len(many)} sampling_params for {len(prompts)} prompts", param="sampling_params")
        out = []
        for params in many:
            own = copy.copy(params)
            own.output_kind = OutputKind.FINAL_ONLY
            out.append(own)
        return out


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    if isinstance(prompts, str | Mapping):
        return [prompts]
    items = _sequence("prompts", prompts, object)
    return [items] if items and isinstance(items[0], int) else items  # a flat list of ids is one prompt


def _sequence(param: str, value: object, *kinds: type) -> list[Any]:
    """`value` as a list. Raises RequestError unless it is a sequence (not a text) of instances of `kinds`."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise RequestError(f"{param} must be a list, got {type(value).__name__}", param=param)
    items = list(value)
    for i, item in enumerate(items):
        if not isinstance(item, kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise RequestError(f"{param}[{i}] must be of type {names}, got {type(item).__name__}", param=param)
    return items


def _parse(prompt: Prompt, tokenizer: Tokenizer) -> tuple[str | None, list[int]]:
    if isinstance(prompt, str):
        return prompt, tokenizer.encode(prompt)
    if isinstance(prompt, Mapping):
        if "prompt_token_ids" in prompt:
            return prompt.get("prompt"), _sequence("prompt_token_ids", prompt["prompt_token_ids"], int)
        if isinstance(prompt.get("prompt"), str):
            return prompt["prompt"], tokenizer.encode(prompt["prompt"])
        raise RequestError(f"a prompt needs 'prompt' or 'prompt_token_ids', got the keys {sorted(map(str, prompt))}", param="prompts")
    if isinstance(prompt, list) and all(isinstance(t, int) for t in prompt):
        return None, list(prompt)
    raise RequestError(f"a prompt is a text, a list of token ids or a mapping, got {type(prompt).__name__}", param="prompts")


def _advance(bar: Any, done: list[RequestOutput]) -> None:
    elapsed = max(bar.format_dict["elapsed"], 1e-9)
    read = sum(len(o.prompt_token_ids) for o in done)
    written = sum(len(c.token_ids) for o in done for c in o.outputs)
    bar.set_postfix_str(f"est. speed input: {read / elapsed:.2f} toks/s, output: {written / elapsed:.2f} toks/s", refresh=False)
    bar.update(len(done) - bar.n)
