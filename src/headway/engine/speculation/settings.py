"""SpeculationSettings: what --speculative-config and its short forms ask for, checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.errors import ConfigError, NotBuiltError
from headway.flags.span import Span, whole

_PARAM = "speculative_config"
METHODS: Final = ("ngram", "suffix", "draft_model")
_METHODS_ELSEWHERE: Final = frozenset(
    ["ngram_gpu", "eagle", "eagle3", "extract_hidden_states", "medusa", "mlp_speculator", "mtp", "deepseek_mtp", "dflash", "dspark"]
)
MOST_TOKENS: Final = 64
_DEFAULT_TOKENS: Final = {"ngram": 5, "suffix": 24, "draft_model": 5}
_DEFAULT_LOOKUP: Final = 5  # as in vLLM, when neither bound is given
_SPANS: Final[Mapping[str, Span]] = {
    "num_speculative_tokens": whole(1, MOST_TOKENS),
    "prompt_lookup_max": whole(1, 64),
    "prompt_lookup_min": whole(1, 64),
    "suffix_decoding_max_tree_depth": whole(1, 64),
    "suffix_decoding_max_cached_requests": whole(0, 1_000_000),
    "suffix_decoding_max_spec_factor": Span(0, 64, above=True),
    "suffix_decoding_min_token_prob": Span(0, 1),
}
_KINDS: Final[Mapping[str, type]] = {"method": str, "model": str, "revision": str, "adaptive": bool}
# Settings of vLLM: the value that asks for what happens anyway. Any other value is refused.
_ONLY: Final[Mapping[str, tuple[object, ...]]] = {
    "draft_tensor_parallel_size": (None, 1),
    "enforce_eager": (None, True, False),
    "disable_padded_drafter_batch": (None, True, False),
    "rejection_sample_method": (None, "strict", "standard"),
    "draft_sample_method": (None, "greedy"),
    "parallel_drafting": (None, False),
    "quantization": (None,),
    "max_model_len": (None,),
    "code_revision": (None,),
    "disable_by_batch_size": (None,),
    "speculative_token_tree": (None,),
}
_OF_METHOD: Final = {"prompt_lookup_": "ngram", "suffix_decoding_": "suffix"}


@dataclass(frozen=True, slots=True)
class SpeculationSettings:
    """`adaptive`: draft only where it is expected to pay (`draft_lengths`); without it every chunk gets all drafts it can."""

    method: str
    num_speculative_tokens: int
    model: str | None = None
    revision: str | None = None
    prompt_lookup_max: int = _DEFAULT_LOOKUP
    prompt_lookup_min: int = _DEFAULT_LOOKUP
    suffix_decoding_max_tree_depth: int = 24
    suffix_decoding_max_cached_requests: int = 10_000
    suffix_decoding_max_spec_factor: float = 1.0
    suffix_decoding_min_token_prob: float = 0.1
    adaptive: bool = True


def speculation_settings(
    config: Mapping[str, Any], method: str | None = None, model: str | None = None, tokens: int | None = None
) -> SpeculationSettings | None:
    """`config` is --speculative-config; the others are --spec-method, --spec-model, --spec-tokens. None = no speculation.

    Raises ConfigError (unknown or contradicting settings, values out of range) and NotBuiltError (methods and settings of vLLM
    that are not there).
    """
    if not isinstance(config, Mapping):
        raise ConfigError(f"{_PARAM} must be a JSON object, got {type(config).__name__}", param=_PARAM)
    given = {name: value for name, value in config.items() if value is not None}
    for name, flag, value in (("method", "spec_method", method), ("model", "spec_model", model), ("num_speculative_tokens", "spec_tokens", tokens)):
        if value is not None and given.setdefault(name, value) != value:
            raise ConfigError(f"--{flag.replace('_', '-')} says {value!r:.100}, --speculative-config says {given[name]!r:.100}", param=flag, fix="Keep one of them.")
    if not given:
        return None
    for name, value in given.items():
        _check(name, value)
    return _settled({name: value for name, value in given.items() if name not in _ONLY})


def _check(name: str, value: Any) -> None:
    if name in _ONLY:
        if value not in _ONLY[name]:
            raise NotBuiltError(f"{name} in --speculative-config is not built", param=_PARAM, fix="Leave it out.")
    elif name in _SPANS:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or value not in _SPANS[name]:
            raise ConfigError(f"{name} in --speculative-config must be {_SPANS[name]}, got {value!r:.100}", param=_PARAM)
    elif name in _KINDS:
        if not isinstance(value, _KINDS[name]):
            raise ConfigError(f"{name} in --speculative-config must be a {_KINDS[name].__name__}, got {value!r:.100}", param=_PARAM)
    else:
        near = difflib.get_close_matches(str(name), [*_SPANS, *_KINDS], 1)
        raise ConfigError(
            f"--speculative-config has no setting {name!r:.100}", reason="unknown_setting", param=_PARAM,
            fix=f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join((*_KINDS, *_SPANS))}.",
        )  # fmt: skip


def _settled(given: dict[str, Any]) -> SpeculationSettings:
    if str(given.get("model")).strip("[]") in METHODS[:2]:  # older guides: --speculative-model [ngram]
        given.setdefault("method", str(given["model"]).strip("[]"))
        del given["model"]
    method = given.setdefault("method", "draft_model" if "model" in given else None)
    if method in _METHODS_ELSEWHERE:
        raise NotBuiltError(f"the speculation method {method} is not built", param="spec_method", fix=f"Use {', '.join(METHODS)}.")
    if method not in METHODS:
        found = "none is given" if method is None else f"got {method!r:.100}"
        raise ConfigError(f"the speculation method must be one of {', '.join(METHODS)}; {found}", param="spec_method", fix="Give --spec-method ngram.")
    if (method == "draft_model") != ("model" in given):
        raise ConfigError(
            "the speculation method draft_model needs a model" if method == "draft_model" else f"the speculation method {method} takes no model",
            param="spec_model", fix="Give --spec-model." if method == "draft_model" else "Leave the model out, or use --spec-method draft_model.",
        )  # fmt: skip
    for prefix, owner in _OF_METHOD.items():
        if method != owner and (odd := [name for name in given if name.startswith(prefix)]):
            raise ConfigError(f"{odd[0]} belongs to the speculation method {owner}, and the method is {method}", param=_PARAM, fix="Leave it out.")
    if method == "ngram":
        low, high = given.get("prompt_lookup_min"), given.get("prompt_lookup_max")
        given["prompt_lookup_min"] = low = low or high or _DEFAULT_LOOKUP
        given["prompt_lookup_max"] = high = high or low
        if low > high:
            raise ConfigError(f"prompt_lookup_min ({low}) is above prompt_lookup_max ({high})", param=_PARAM)
    given.setdefault("num_speculative_tokens", _DEFAULT_TOKENS[method])
    return SpeculationSettings(**given)
