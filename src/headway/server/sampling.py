"""From a request body to SamplingParams: explicit values, else the model's own defaults, else neutral ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.engine.outputs import OutputKind
from headway.engine.sampling_params import SamplingParams
from headway.errors import RequestError
from headway.server.asked_form import asked_form
from headway.server.engine_port import EnginePort
from headway.wire.generation_body import GenerationBody
from headway.wire.pooling.reading_body import ReadingBody

_FROM_MODEL = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


def sampling_params(
    body: GenerationBody,
    engine: EnginePort,
    *,
    max_tokens: int | None,
    logprobs: int | None,
    prompt_logprobs: int | None,
    stream_interval: int,
) -> SamplingParams:
    """Raises RequestError with `param` for values out of range. `max_tokens` None = as many as the context has room for.

    A limit in the model's generation config (`max_new_tokens`) holds for all requests, as in vLLM.
    """
    defaults = engine.default_sampling
    return SamplingParams(
        n=body.n,
        presence_penalty=body.presence_penalty,
        frequency_penalty=body.frequency_penalty,
        seed=body.seed,
        stop=body.stop,
        stop_token_ids=body.stop_token_ids,
        ignore_eos=body.ignore_eos,
        max_tokens=_limited(max_tokens, defaults),
        min_tokens=body.min_tokens,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        logprob_token_ids=_with_logprobs(body.logprob_token_ids, logprobs),
        skip_special_tokens=body.skip_special_tokens,
        spaces_between_special_tokens=body.spaces_between_special_tokens,
        include_stop_str_in_output=body.include_stop_str_in_output,
        output_kind=OutputKind.DELTA if body.stream else OutputKind.FINAL_ONLY,
        logit_bias=body.logit_bias,
        allowed_token_ids=body.allowed_token_ids,
        bad_words=body.bad_words,
        stream_interval=body.stream_interval or stream_interval,
        extra_args=body.vllm_xargs or None,
        structured_outputs=asked_form(body),
        thinking_token_budget=None if body.thinking_token_budget == -1 else body.thinking_token_budget,
        **{name: _chosen(getattr(body, name), defaults.get(name), neutral) for name, neutral in _FROM_MODEL.items()},
    )


def check_logprobs(param: str, asked: int | None, engine: EnginePort) -> None:
    """`param` is the field's name on this surface. Raises RequestError."""
    most = engine.config.max_logprobs
    if asked is None or most == -1 or 0 <= asked <= most:
        return
    raise RequestError(
        f"{param} must be from 0 to {most} (--max-logprobs), got {asked}. (parameter={param}, value={asked})",
        param=param,
    )


def check_priority(body: GenerationBody | ReadingBody, engine: EnginePort) -> None:
    if body.priority != 0 and engine.config.scheduling_policy != "priority":
        raise RequestError(
            f"priority is {body.priority}, but this server works in order of arrival",
            param="priority",
            fix="Leave it out, or start the server with --scheduling-policy priority.",
        )


def _with_logprobs(ids: list[int], logprobs: int | None) -> list[int] | None:
    if ids and logprobs is None:
        raise RequestError("logprob_token_ids needs logprobs", param="logprob_token_ids")
    return list(dict.fromkeys(ids)) or None


def _chosen(explicit: Any, model: Any, neutral: Any) -> Any:
    return explicit if explicit is not None else model if model is not None else neutral


def _limited(asked: int | None, defaults: Mapping[str, Any]) -> int | None:
    limit = defaults.get("max_tokens")
    if asked is None or limit is None:
        return asked if limit is None else int(limit)
    return min(asked, int(limit))
