"""SamplingParams: how one request wants its tokens chosen and when it ends. Ranges follow contract of vLLM 0.32."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.engine.outputs import OutputKind
from headway.engine.structured.request import StructuredOutputs
from headway.engine.thinking.marks import THINK_TAGS, ThinkingMarks
from headway.errors import RequestError
from headway.wire.environment_limit import environment_limit

_log = logging.getLogger(__name__)
_GREEDY_BELOW = 1e-5
_LOWEST_TEMPERATURE = 1e-2
MAX_STOP_STRINGS = environment_limit("VLLM_MAX_STOP_STRINGS", 4)
MAX_STOP_CHARACTERS = 16_384  # of all stop strings; each character costs time in every sequence
MAX_N = environment_limit("VLLM_MAX_N_SEQUENCES", 16384)
MAX_BAD_WORDS = 128


def _refuse(param: str, value: object, expected: str) -> RequestError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return RequestError(f"{param} must be {expected}, got {shown}. (parameter={param}, value={shown})", param=param)


def _strings(param: str, value: str | Iterable[str] | None) -> list[str]:
    if value is None:
        return []
    items = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if any(not isinstance(s, str) or not s for s in items):
        raise _refuse(param, value, "a non-empty string or a list of non-empty strings")
    return items


def _token_ids(param: str, value: Iterable[int] | None) -> list[int] | None:
    if value is None:
        return None
    ids = list(value) if isinstance(value, Iterable) else None
    if ids is None or not all(_is_int(t) for t in ids):
        raise _refuse(param, value, "a list of token ids")
    return ids


@dataclass(slots=True)
class SamplingParams:
    """Sampling of one request.

    Greedy when temperature < 1e-5. `top_k` 0 or -1 = off. `seed` makes a request repeat itself. `logprobs` is the
    number of alternatives (-1 = whole vocabulary). Raises RequestError with `param` set when a value is out of range.
    Token ids are checked against the vocabulary by the engine, which knows it (`engine/admission.py`).
    """

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: list[str] | str | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    detokenize: bool = True
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    output_kind: OutputKind = OutputKind.CUMULATIVE
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    skip_reading_prefix_cache: bool | None = None
    stream_interval: int = 1
    extra_args: dict[str, Any] | None = None
    thinking_token_budget: int | None = None  # tokens of reasoning after which its end is forced
    thinking_marks: ThinkingMarks = THINK_TAGS
    structured_outputs: Any = None  # StructuredOutputs, or a mapping that becomes one
    logits_processors: Any = None  # of vLLM's V0: refused
    bad_words_ids: list[list[int]] = field(default_factory=list)  # filled by the engine from bad_words

    def __post_init__(self) -> None:
        self.stop = _strings("stop", self.stop)
        self.bad_words = _strings("bad_words", self.bad_words)
        self.stop_token_ids = _token_ids("stop_token_ids", self.stop_token_ids) or []
        self.allowed_token_ids = _token_ids("allowed_token_ids", self.allowed_token_ids)
        self.logprob_token_ids = _token_ids("logprob_token_ids", self.logprob_token_ids)
        self._check_ranges()
        if 0 < self.temperature < _LOWEST_TEMPERATURE:
            _log.warning("temperature %g is below %g and was raised to it", self.temperature, _LOWEST_TEMPERATURE)
            self.temperature = _LOWEST_TEMPERATURE

    def _check_ranges(self) -> None:
        for name, value, ok, expected in (
            ("n", self.n, _is_int(self.n) and 1 <= self.n <= MAX_N, f"an integer from 1 to {MAX_N}"),
            ("presence_penalty", self.presence_penalty, _within(self.presence_penalty, -2, 2), "in [-2, 2]"),
            ("frequency_penalty", self.frequency_penalty, _within(self.frequency_penalty, -2, 2), "in [-2, 2]"),
            ("repetition_penalty", self.repetition_penalty, _within(self.repetition_penalty, 1e-6, 1e6), "greater than zero"),
            ("temperature", self.temperature, _within(self.temperature, 0, 2), "in [0, 2]"),
            ("top_p", self.top_p, _within(self.top_p, 0, 1) and self.top_p > 0, "in (0, 1]"),
            ("top_k", self.top_k, _is_int(self.top_k) and self.top_k >= -1, "-1 or 0 (off) or at least 1"),
            ("min_p", self.min_p, _within(self.min_p, 0, 1), "in [0, 1]"),
            ("seed", self.seed, self.seed is None or (_is_int(self.seed) and -(2**63) <= self.seed < 2**63), "a 64-bit integer"),
            ("max_tokens", self.max_tokens, self.max_tokens is None or (_is_int(self.max_tokens) and self.max_tokens >= 1), "at least 1"),
            ("min_tokens", self.min_tokens, _is_int(self.min_tokens) and self.min_tokens >= 0, "at least 0"),
            ("logprobs", self.logprobs, self.logprobs is None or (_is_int(self.logprobs) and self.logprobs >= -1), "an integer from 0 on, or -1 for all"),
            ("prompt_logprobs", self.prompt_logprobs, self.prompt_logprobs is None or (_is_int(self.prompt_logprobs) and self.prompt_logprobs >= -1), "an integer from 0 on, or -1 for all"),
            ("stream_interval", self.stream_interval, _is_int(self.stream_interval) and self.stream_interval >= 1, "at least 1"),
            ("thinking_token_budget", self.thinking_token_budget, self.thinking_token_budget is None or (_is_int(self.thinking_token_budget) and self.thinking_token_budget >= 0), "at least 0"),
            ("logit_bias", self.logit_bias, _is_bias(self.logit_bias), "token ids with a number each"),
            ("allowed_token_ids", self.allowed_token_ids, self.allowed_token_ids is None or len(self.allowed_token_ids) > 0, "absent or a non-empty list"),
        ):
            if not ok:
                raise _refuse(name, value, expected)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise _refuse("min_tokens", self.min_tokens, f"at most max_tokens ({self.max_tokens})")
        if len(self.stop_strings) > MAX_STOP_STRINGS:
            raise _refuse("stop", f"{len(self.stop_strings)} strings", f"at most {MAX_STOP_STRINGS} strings (VLLM_MAX_STOP_STRINGS raises this)")
        if (size := sum(map(len, self.stop_strings))) > MAX_STOP_CHARACTERS:
            raise _refuse("stop", f"{size} characters", f"at most {MAX_STOP_CHARACTERS} characters in all")
        if len(self.bad_words or []) > MAX_BAD_WORDS:
            raise _refuse("bad_words", f"{len(self.bad_words or [])} words", f"at most {MAX_BAD_WORDS} words")
        if self.stop_strings and not self.detokenize:
            raise _refuse("stop", self.stop, "absent when detokenize is false, since stop strings are found in text")
        if self.greedy and self.n > 1:
            raise _refuse("n", self.n, "1 when sampling is greedy (temperature 0), since all n would be equal")
        if self.structured_outputs is not None:
            self.structured_outputs = StructuredOutputs.of(self.structured_outputs)
        if self.extra_args is not None and not isinstance(self.extra_args, Mapping):
            raise _refuse("extra_args", self.extra_args, "a mapping")
        if self.logits_processors:
            raise RequestError(
                "logits_processors cannot be given with a request: processors see the whole batch and are loaded at the start",
                param="logits_processors",
                fix="Derive a class from headway.engine.logits_processor.AdapterLogitsProcessor and give it to LLM(logits_processors=[...]).",
            )

    @property
    def greedy(self) -> bool:
        return self.temperature < _GREEDY_BELOW

    @property
    def stop_strings(self) -> list[str]:
        """`stop` after normalisation: always a list."""
        return self.stop if isinstance(self.stop, list) else []

    def for_sequence(self, index: int) -> SamplingParams:
        """Parameters of sequence `index` of the n: same, with n = 1 and a seed of its own (the next of 64 bits)."""
        own = copy.copy(self)  # shares the lists: n times a long one would fill the memory
        own.n = 1
        own.seed = None if self.seed is None else (self.seed + index + 2**63) % 2**64 - 2**63
        return own


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_bias(value: object) -> bool:
    """Which ids exist and how large a bias may be is checked by the engine."""
    if value is None:
        return True
    return isinstance(value, Mapping) and all(_is_int(t) and isinstance(b, int | float) for t, b in value.items())


def _within(value: object, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
