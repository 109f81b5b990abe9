"""One round of a beam search as ordinary requests, and its result as an ordinary output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.admission import AdmissionLimits, admit
from headway.engine.beam_search import BeamSearch, BeamSearchParams, BeamSearchSequence
from headway.engine.detokenizer import Detokenizer
from headway.engine.lora.adapter import Adapter
from headway.engine.outputs import CompletionOutput, PositionLogprobs, RequestOutput
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request
from headway.errors import RequestError, StepError
from headway.kvcache.manager import KVCacheManager


def begin(
    prompt_ids: list[int], params: BeamSearchParams, limits: AdmissionLimits, tokenizer: Tokenizer, widest: int, kept: int = -1
) -> BeamSearch:
    """`widest`: as many sequences as a step may hold (--max-num-seqs); `kept` as in BeamSearch. Raises RequestError."""
    if params.beam_width > widest:
        raise RequestError(
            f"beam search with {params.beam_width} beams needs as many sequences in one step, this server has {widest}",
            param="n", fix="Ask for fewer, or raise --max-num-seqs.",
        )  # fmt: skip
    eos_ids = frozenset(i for i in tokenizer.eos_ids if i < limits.vocab_size)
    return BeamSearch(prompt_ids, params, eos_ids, limits.max_model_len, limits.vocab_size, kept)


def round_requests(
    search: BeamSearch, name: str, limits: AdmissionLimits, tokenizer: Tokenizer, kv: KVCacheManager, *,
    priority: int = 0, cache_salt: str | None = None, adapter: Adapter | None = None,
) -> list[Request]:  # fmt: skip
    """One request for each open beam. What a beam shares with others, and with itself a round ago, is found in the prefix
    cache. --max-logprobs limits what callers see, not this."""
    own_limits = replace(limits, max_logprobs=-1)
    requests = [
        admit(f"{name}-{number}", beam.tokens, search.asking, own_limits, tokenizer, kv, priority=priority, cache_salt=cache_salt, adapter=adapter)
        for number, beam in enumerate(search.open)
    ]
    for request in requests:
        request.trace_headers = None  # a round is no request that somebody made
    return requests


def row_of(output: RequestOutput) -> PositionLogprobs:
    """The log-probabilities that a round's request was made for. Raises StepError if it was ended before."""
    sequence = output.outputs[0]
    if not sequence.logprobs:
        raise StepError(f"a beam ended without a token ({sequence.finish_reason})")
    return sequence.logprobs[0]


def as_output(
    search: BeamSearch, request_id: str, prompt: str | None, prompt_ids: list[int], shown: SamplingParams, tokenizer: Tokenizer, cached: int
) -> RequestOutput:
    """The best beams as the sequences of one request. `shown`: whether with log-probabilities, and how to write the text."""
    sequences = [_completion(i, beam, prompt_ids, shown, tokenizer) for i, beam in enumerate(search.best())]
    return RequestOutput(request_id, prompt, prompt_ids, outputs=sequences, finished=True, num_cached_tokens=cached)


def _completion(
    index: int, beam: BeamSearchSequence, prompt_ids: Sequence[int], shown: SamplingParams, tokenizer: Tokenizer
) -> CompletionOutput:
    end = len(beam.tokens) - (beam.finish_reason == "stop" and not shown.include_stop_str_in_output)
    ids = beam.tokens[len(prompt_ids) : end]
    writer = Detokenizer(
        tokenizer, skip_special_tokens=shown.skip_special_tokens,
        spaces_between_special_tokens=shown.spaces_between_special_tokens, prompt_ids=prompt_ids,
    )  # fmt: skip
    text = "".join(map(writer.push, ids)) + writer.flush()
    logprobs = None
    if shown.logprobs is not None:
        logprobs = beam.logprobs[: len(ids)]
    return CompletionOutput(
        index, text, ids, beam.cum_logprob if shown.logprobs is not None else None, logprobs, beam.finish_reason
    )
