"""Admission of prompts that are read: the checks of `admission` that concern them, and a request that makes no tokens."""

from __future__ import annotations

from typing import Final

from headway.engine.admission import AdmissionLimits, check_ids, check_salt
from headway.engine.outputs import OutputKind
from headway.engine.pooling.pooler import Pooler
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.request_terms import ORDINARY, RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request, Sequence
from headway.errors import ContextLengthError, RequestError
from headway.kvcache.manager import KVCacheManager

READING: Final = SamplingParams(temperature=0, max_tokens=None, detokenize=False, output_kind=OutputKind.FINAL_ONLY)
"""Nothing is sampled."""
_READING_ALL: Final = SamplingParams(temperature=0, max_tokens=None, detokenize=False, output_kind=OutputKind.FINAL_ONLY, skip_reading_prefix_cache=True)


def admit_reading(
    request_id: str, prompt_token_ids: list[int], params: PoolingParams, pooler: Pooler, limits: AdmissionLimits, kv: KVCacheManager,
    terms: RequestTerms = ORDINARY,
) -> Request:  # fmt: skip
    """A prompt may fill the context: nothing follows it. Raises ContextLengthError or RequestError with `param` set."""
    count = len(prompt_token_ids)
    if not count:
        raise RequestError("the input has no tokens", reason="empty_prompt", param="input", fix="Send at least one token.")
    if count > limits.max_model_len:
        raise ContextLengthError(
            f"This model's maximum context length is {limits.max_model_len} tokens. However, your input contains {count} tokens. "
            "Shorten it or use truncate_prompt_tokens",
            param="input_tokens",
        )
    check_ids("input", prompt_token_ids, limits.vocab_size)
    check_ids("label_token_ids", params.token_ids, limits.vocab_size)
    check_salt(terms.cache_salt)
    readout = pooler.readout(params)
    sampling = _READING_ALL if readout.all_rows else READING
    request = Request(
        request_id, prompt_token_ids, sampling, prompt=terms.prompt_text, priority=terms.priority, cache_salt=terms.cache_salt, adapter=terms.adapter
    )
    request.readout = readout
    table = kv.new_table(terms.cache_salt, None if terms.adapter is None else terms.adapter.digest)
    request.sequences.append(
        Sequence(
            request=request, index=0, params=sampling, tokens=list(prompt_token_ids), table=table, eos_ids=frozenset(),
            max_tokens_total=count + 1, num_prompt=count,
        )
    )  # fmt: skip
    request.trace_headers = terms.trace_headers
    request.deadline = terms.deadline()
    return request
