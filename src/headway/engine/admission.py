"""Admission: the last look at a request before the engine sees it. What passes here cannot hurt a step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.logits_processor import LogitsProcessor
from headway.engine.lora.adapter import Adapter
from headway.engine.processor_loading import check_extra_args
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request, Sequence
from headway.engine.thinking.budget import ThinkingBudget, ThinkingProgress
from headway.errors import ContextLengthError, RequestError
from headway.kvcache.block_hash import NOTHING_ELSE
from headway.kvcache.manager import KVCacheManager

if TYPE_CHECKING:
    from headway.engine.images.prompt_images import PromptImages
    from headway.engine.structured.form import Form

_BIAS_LIMIT = 100.0
_MAX_SALT = 1024
_MAX_CELLS = 2**20  # of logits that one list of tokens names, in all sequences of a request
_MAX_BAD_TOKENS = 1024  # of all bad words together, as in vLLM
_MAX_BAD_CHARACTERS = 16 * _MAX_BAD_TOKENS  # more is refused without tokenizing it


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """What the loaded model allows. `vocab_size` is that of the logits, which may differ from the tokenizer's."""

    max_model_len: int
    vocab_size: int
    max_logprobs: int  # -1 = no limit
    processors: tuple[type[LogitsProcessor], ...] = ()
    generates: bool = True  # the model has logits of tokens


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
    form: Form | None = None,
    adapter: Adapter | None = None,
    images: PromptImages | None = None,
) -> Request:
    """Check everything that needs the model to be known, and build the request with its sequences.

    `form`: what `params.structured_outputs` became (`structured.forms`); `adapter`: the one that changes what the model computes;
    `images`: those whose tokens are in the prompt.

    Raises ContextLengthError or RequestError with `param` set.
    """
    check_prompt(prompt_token_ids, limits)
    _check_params(params, limits)
    check_extra_args(params, limits.processors)
    if (params.structured_outputs is None) != (form is None):
        raise RequestError("structured_outputs cannot be used here: its form was not compiled", param="structured_outputs")
    check_salt(cache_salt)
    if params.bad_words:
        params = replace(params, bad_words_ids=_bad_word_ids(params.bad_words, tokenizer))
        check_ids("bad_words", chain.from_iterable(params.bad_words_ids), limits.vocab_size)
    eos_ids = frozenset(i for i in tokenizer.eos_ids if i < limits.vocab_size)
    _check_contradiction(params, eos_ids, limits.vocab_size)
    request = Request(request_id, prompt_token_ids, params, prompt=prompt, priority=priority, cache_salt=cache_salt, form=form, adapter=adapter, images=images)
    contents = NOTHING_ELSE if images is None else images.contents(kv.block_size)
    room = limits.max_model_len - len(prompt_token_ids)
    total = len(prompt_token_ids) + min(room, params.max_tokens or room)
    budget = ThinkingBudget.of(params, prompt_token_ids, tokenizer)
    request.make_sequence = partial(_sequence, request, kv, eos_ids, total, budget, contents)
    request.sequences.append(request.make_sequence(0))
    request.unborn = params.n - 1
    return request


def _sequence(
    request: Request, kv: KVCacheManager, eos_ids: frozenset[int], max_tokens_total: int, budget: ThinkingBudget | None,
    contents: Mapping[int, bytes], index: int,
) -> Sequence:  # fmt: skip
    params = request.params
    return Sequence(
        request=request,
        index=index,
        params=params if params.n == 1 else params.for_sequence(index),
        tokens=list(request.prompt_token_ids),
        table=kv.new_table(request.cache_salt, None if request.adapter is None else request.adapter.digest, contents),
        eos_ids=eos_ids,
        max_tokens_total=max_tokens_total,
        num_prompt=len(request.prompt_token_ids),
        form=None if request.form is None else request.form.begin(),
        thinking=None if budget is None else ThinkingProgress(budget),
    )


def check_prompt(prompt_token_ids: list[int], limits: AdmissionLimits) -> None:
    """A prompt has at least one token, leaves room for at least one more, and stays inside the vocabulary."""
    if not limits.generates:
        raise RequestError(
            "this model is read and does not generate", reason="task_unsupported", param="model", fix="Ask for embeddings or classes, or ask another model."
        )
    if not prompt_token_ids:
        raise RequestError("the prompt has no tokens", reason="empty_prompt", param="prompt", fix="Send at least one token.")
    count = len(prompt_token_ids)
    if count >= limits.max_model_len:
        raise ContextLengthError(
            f"This model's maximum context length is {limits.max_model_len} tokens. However, your prompt contains {count} tokens, "
            "which leaves no room for an answer. Shorten the prompt or use truncate_prompt_tokens",
            param="input_tokens",
        )
    check_ids("prompt", prompt_token_ids, limits.vocab_size)


def check_salt(cache_salt: str | None) -> None:
    if cache_salt is not None and not 0 < len(cache_salt) <= _MAX_SALT:
        raise RequestError(f"cache_salt must have 1 to {_MAX_SALT} characters, got {len(cache_salt)}", param="cache_salt")


def check_ids(param: str, ids: Iterable[int], vocab_size: int) -> None:
    for token in ids:
        if not 0 <= token < vocab_size:
            raise RequestError(
                f"{param} holds token id {token}, which is out of range: the vocabulary has {vocab_size} tokens, 0 to {vocab_size - 1}",
                reason="token_out_of_vocabulary",
                param=param,
            )


def _check_params(params: SamplingParams, limits: AdmissionLimits) -> None:
    for name in ("stop_token_ids", "allowed_token_ids", "logit_bias"):
        count = len(getattr(params, name) or ())
        if count * params.n > _MAX_CELLS:
            raise RequestError(f"{name} names {count} tokens for each of {params.n} choices, the limit is {_MAX_CELLS} in all", param=name)
    for name in ("stop_token_ids", "allowed_token_ids", "logprob_token_ids"):
        check_ids(name, getattr(params, name) or (), limits.vocab_size)
    check_ids("logit_bias", params.logit_bias or (), limits.vocab_size)
    for token, value in (params.logit_bias or {}).items():
        if not (math.isfinite(value) and abs(value) <= _BIAS_LIMIT):
            raise RequestError(f"logit_bias of token {token} must be in [-100, 100], got {value}", param="logit_bias")
    asked = len(params.logprob_token_ids or ())
    if 0 <= limits.max_logprobs < asked:
        raise RequestError(
            f"logprob_token_ids names {asked} tokens, this server gives at most {limits.max_logprobs} (--max-logprobs)", param="logprob_token_ids"
        )
    vocab = limits.vocab_size
    allowed = vocab if limits.max_logprobs == -1 else min(limits.max_logprobs, vocab)
    for name in ("logprobs", "prompt_logprobs"):
        asked = getattr(params, name)
        if asked is not None and (vocab if asked == -1 else asked) > allowed:
            raise RequestError(
                f"{name} asks for {'all' if asked == -1 else asked} alternatives, this server gives at most {allowed} "
                f"(--max-logprobs, vocabulary {vocab}). (parameter={name}, value={asked})",
                param=name,
            )


def _bad_word_ids(words: list[str], tokenizer: Tokenizer) -> list[list[int]]:
    """Each word as it is spelled at the start of a text and after a space; the second only where it differs.

    Raises RequestError for more than 1024 tokens.
    """
    size = sum(map(len, words))
    if size > _MAX_BAD_CHARACTERS:
        raise RequestError(f"bad_words may have {_MAX_BAD_CHARACTERS} characters in all, got {size}", param="bad_words")
    out: list[list[int]] = []
    for word in words:
        bare = tokenizer.encode(word.lstrip(), add_special_tokens=False)
        spaced = tokenizer.encode(" " + word.lstrip(), add_special_tokens=False)
        if bare:
            out.append(bare)
        if spaced and spaced != bare and len(spaced) == len(bare):
            out.append(spaced)
    count = sum(map(len, out))
    if count > _MAX_BAD_TOKENS:
        raise RequestError(f"bad_words may make {_MAX_BAD_TOKENS} tokens in all, got {count}", param="bad_words")
    return out


def _check_contradiction(params: SamplingParams, eos_ids: frozenset[int], vocab_size: int) -> None:
    """Raises RequestError where no first token is possible. What only shows later ends the sequence with an error."""
    bad = {ids[0] for ids in params.bad_words_ids if len(ids) == 1}
    held_back = {*eos_ids, *(params.stop_token_ids or ())} if params.min_tokens > 0 else set()
    allowed = range(vocab_size) if params.allowed_token_ids is None else set(params.allowed_token_ids)
    if len(allowed) > len(bad) + len(held_back) or set(allowed) - bad - held_back:
        return
    if set(allowed) <= bad:
        raise RequestError("bad_words forbids every token that is allowed", param="bad_words")
    raise RequestError(
        f"min_tokens is {params.min_tokens}, but bad_words and the tokens that end the answer leave no token to begin with",
        param="min_tokens",
    )
