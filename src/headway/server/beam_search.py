"""Beam search over HTTP: which fields it knows, and how they become parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headway.engine.beam_search import BeamSearchParams
from headway.engine.sampling_params import SamplingParams
from headway.errors import RequestError
from headway.server.engine_port import EnginePort
from headway.wire.generation_body import GenerationBody

_NO_EFFECT = "beam search picks the likeliest beams, so it has no effect"
_CHANGE = "beams overtake each other until the end, so nothing can be sent before"
_FREE = "beams are not held to a form"

# Fields that beam search does not know: why, and which values ask for nothing.
_UNKNOWN: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "stream": (_CHANGE, lambda v: v is False),
    "stop": ("beams end with an end token or at max_tokens", lambda v: not v),
    "stop_token_ids": ("beams end with an end token or at max_tokens", lambda v: not v),
    "min_tokens": ("beams end with an end token or at max_tokens", lambda v: v == 0),
    "top_p": (_NO_EFFECT, lambda v: v == 1),
    "top_k": (_NO_EFFECT, lambda v: v in (0, -1)),
    "min_p": (_NO_EFFECT, lambda v: v == 0),
    "presence_penalty": (_NO_EFFECT, lambda v: v == 0),
    "frequency_penalty": (_NO_EFFECT, lambda v: v == 0),
    "repetition_penalty": (_NO_EFFECT, lambda v: v == 1),
    "logit_bias": (_NO_EFFECT, lambda v: not v),
    "allowed_token_ids": (_NO_EFFECT, lambda v: not v),
    "bad_words": (_NO_EFFECT, lambda v: not v),
    "vllm_xargs": ("logits processors see single requests, not beams", lambda v: not v),
    "prompt_logprobs": ("a prompt is computed once for many beams", lambda v: False),
    "logprob_token_ids": ("beams carry their likeliest alternatives", lambda v: not v),
    "thinking_token_budget": (_FREE, lambda v: v == -1),
    "response_format": (_FREE, lambda v: v.type == "text"),
    **dict.fromkeys(("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"), (_FREE, lambda v: False)),
}


def beam_params(body: GenerationBody, engine: EnginePort, max_tokens: int | None) -> BeamSearchParams | None:
    """None when the body does not ask for beam search. `max_tokens` None = as many as the context has room for.

    Raises RequestError naming a field that beam search does not know.
    """
    if not body.use_beam_search:
        if body.length_penalty != 1:
            raise RequestError("length_penalty needs use_beam_search=true", param="length_penalty")
        return None
    for name, (why, harmless) in _UNKNOWN.items():
        value = getattr(body, name, None)
        if value is not None and not harmless(value):
            raise RequestError(f"{name} cannot be given with use_beam_search: {why}", param=name)
    if body.n < 1:
        raise RequestError(f"n, the number of beams, must be at least 1, got {body.n}", param="n")
    temperature = body.temperature if body.temperature is not None else engine.default_sampling.get("temperature", 1.0)
    return BeamSearchParams(
        beam_width=body.n,
        max_tokens=engine.max_model_len if max_tokens is None else max_tokens,
        ignore_eos=body.ignore_eos,
        temperature=temperature,
        length_penalty=body.length_penalty,
        include_stop_str_in_output=body.include_stop_str_in_output,
    )


def shown_params(body: GenerationBody, logprobs: int | None) -> SamplingParams:
    """What of the beams is shown, and how."""
    return SamplingParams(
        logprobs=logprobs,
        skip_special_tokens=body.skip_special_tokens,
        spaces_between_special_tokens=body.spaces_between_special_tokens,
        include_stop_str_in_output=body.include_stop_str_in_output,
    )
