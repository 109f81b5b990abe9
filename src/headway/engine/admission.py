"""Admission: the last look at a request before the engine sees it. What passes here cannot hurt a step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request, Sequence
from headway.errors import ContextLengthError, RequestError
from headway.kvcache.manager import KVCacheManager

_BIAS_LIMIT = 100.0
_MAX_SALT = 1024


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """What the loaded model allows. `vocab_size` is that of the logits, which may differ from the tokenizer's."""

    max_model_len: int
    vocab_size: int
    max_logprobs: int  # -1 = no limit


def admit(
    request_id: str,
    prompt_token_ids: list[int],
    params: SamplingParams,
    limits: AdmissionLimits,
    tokenizer: Tokenizer,
    kv: KVCacheManager,
    *,
    prompt: str | None = None,
    priority: int = 0,
    cache_salt: str | None = None,
) -> Request:
    """Check everything that needs the model to be known, and build the request with its sequences.

    Raises ContextLengthError or RequestError with `param` set.
    """
    check_prompt(prompt_token_ids, limits)
    _check_params(params, limits)
    if cache_salt is not None and not 0 < len(cache_salt) <= _MAX_SALT:
        raise RequestError(f"cache_salt must have 1 to {_MAX_SALT} characters, got {len(cache_salt)}", param="cache_salt")
    if params.bad_words:
        params = replace(params, bad_words_ids=_bad_word_ids(params.bad_words, tokenizer))
        _check_contradiction(params)
    request = Request(request_id, prompt_token_ids, params, prompt=prompt, priority=priority, cache_salt=cache_salt)
    room = limits.max_model_len - len(prompt_token_ids)
    for index in range(params.n):
        request.sequences.append(
            Sequence(
                request=request,
                index=index,
                params=params if params.n == 1 else params.for_sequence(index),
                tokens=list(prompt_token_ids),
                table=kv.new_table(cache_salt),
                eos_ids=frozenset(i for i in tokenizer.eos_ids if i < limits.vocab_size),
                max_tokens_total=len(prompt_token_ids) + min(room, params.max_tokens or room),
                num_prompt=len(prompt_token_ids),
            )
        )
    return request


def check_prompt(prompt_token_ids: list[int], limits: AdmissionLimits) -> None:
    """A prompt has at least one token, leaves room for at least one more, and stays inside the vocabulary."""
    if not prompt_token_ids:
        raise RequestError("the prompt has no tokens", reason="empty_prompt", param="prompt", fix="Send at least one token.")
    count = len(prompt_token_ids)
    if count >= limits.max_model_len:
        raise ContextLengthError(
            f"This model's maximum context length is {limits.max_model_len} tokens. However, your prompt contains {count} tokens, "
            "which leaves no room for an answer. Shorten the prompt or use truncate_prompt_tokens",
            param="input_tokens",
        )
    _check_ids("prompt", prompt_token_ids, limits.vocab_size)


def _check_ids(param: str, ids: Iterable[int], vocab_size: int) -> None:
    for token in ids:
        if not 0 <= token < vocab_size:
            raise RequestError(
                f"{param} holds token id {token}, which is out of range: the vocabulary has {vocab_size} tokens, 0 to {vocab_size - 1}",
                reason="token_out_of_vocabulary",
                param=param,
            )


def _check_params(params: SamplingParams, limits: AdmissionLimits) -> None:
    for name in ("stop_token_ids", "allowed_token_ids", "logprob_token_ids"):
        _check_ids(name, getattr(params, name) or (), limits.vocab_size)
    _check_ids("logit_bias", params.logit_bias or (), limits.vocab_size)
    for token, value in (params.logit_bias or {}).items():
        if not (math.isfinite(value) and abs(value) <= _BIAS_LIMIT):
            raise RequestError(f"logit_bias of token {token} must be in [-100, 100], got {value}", param="logit_bias")
    for name in ("logprobs", "prompt_logprobs"):
        asked = getattr(params, name)
        allowed = limits.max_logprobs
        if asked is not None and allowed != -1 and (asked == -1 or asked > allowed):
            raise RequestError(
                f"{name} asks for {'all' if asked == -1 else asked} alternatives, this server gives at most {allowed} "
                f"(--max-logprobs). (parameter={name}, value={asked})",
                param=name,
            )


def _bad_word_ids(words: list[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Each word as it is spelled at the start of a text and after a space; the second only where it differs."""
    out: list[list[int]] = []
    for word in words:
        bare = tokenizer.encode(word.lstrip(), add_special_tokens=False)
        spaced = tokenizer.encode(" " + word.lstrip(), add_special_tokens=False)
        if bare:
            out.append(bare)
        if spaced and spaced != bare and len(spaced) == len(bare):
            out.append(spaced)
    return out


def _check_contradiction(params: SamplingParams) -> None:
    never = {ids[0] for ids in params.bad_words_ids if len(ids) == 1}
    if params.allowed_token_ids is not None and set(params.allowed_token_ids) <= never:
        raise RequestError("bad_words forbids every token that allowed_token_ids allows", param="bad_words")
