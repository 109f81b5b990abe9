"""Another configuration for a model whose files stay as they are: single values, or a config.json from elsewhere."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from headway.artifacts.card import ModelCard
from headway.artifacts.context_length import context_length
from headway.artifacts.rope_overrides import respelled
from headway.errors import ConfigError

_MOST_VALUES: Final = 10_000
_DEEPEST: Final = 8
# What would make somebody run code of the repository, or read weights in another way than they are stored.
_REFUSED: Final = {
    "auto_map": "code from model repositories is never run",
    "custom_pipelines": "code from model repositories is never run",
    "quantization_config": "how weights are stored is a fact of the files (see --quantization)",
    "compression_config": "how weights are stored is a fact of the files (see --quantization)",
}
# Fields that many configurations leave out and that mean something when they are there.
_OPTIONAL: Final = frozenset({
    "architectures", "model_type", "head_dim", "num_key_value_heads", "rope_scaling", "rope_parameters", "rope_theta", "sliding_window",
    "use_sliding_window", "max_window_layers", "layer_types", "tie_word_embeddings", "attention_bias", "mlp_bias", "eos_token_id",
    "bos_token_id", "pad_token_id", "max_position_embeddings", "text_config", "partial_rotary_factor",
})  # fmt: skip


def with_config(card: ModelCard, config: Mapping[str, Any]) -> ModelCard:
    """The card with another configuration, and with everything that is read from it."""
    kind, named = config.get("model_type"), config.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    return replace(
        card,
        config=config,
        model_type=kind if isinstance(kind, str) else card.model_type,
        architecture=first if isinstance(first, str) else card.architecture,
        context_length=context_length(config),
    )


def override_config(card: ModelCard, overrides: Mapping[str, Any]) -> tuple[ModelCard, list[str]]:
    """The card with `overrides` merged into its configuration, object into object, and a sentence for each change.

    null removes a value. Raises ConfigError (`hf_overrides_invalid`) for values that are refused, of another kind than
    what they replace, or too many.
    """
    _check_size(overrides)
    for name, why in _REFUSED.items():
        if name in overrides:
            raise _invalid(name, f"cannot be overridden: {why}")
    changes: list[str] = []
    config = _merged(card.config, respelled(card.config, overrides), (), changes)
    return with_config(card, config), changes


def _merged(
    old: Mapping[str, Any], new: Mapping[str, Any], path: tuple[str, ...], changes: list[str]
) -> dict[str, Any]:
    out = dict(old)
    for name, value in new.items():
        here = (*path, name)
        shown = ".".join(here)
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            out[name] = _merged(before, value, here, changes)
            continue
        if not _same_kind(before, value):
            raise _invalid(shown, f"must be like the value it replaces ({before!r:.60}), found {value!r:.60}")
        out[name] = value
        note = "" if name in old or name in _OPTIONAL or path else _unknown(name, old)
        changes.append(f"{shown}: {before!r:.200} -> {value!r:.200}{note}")
    return out


def _same_kind(before: Any, value: Any) -> bool:
    if before is None or value is None:
        return True
    if isinstance(before, bool) or isinstance(value, bool):
        return isinstance(before, bool) and isinstance(value, bool)
    numbers = (int, float)
    if isinstance(before, numbers) and isinstance(value, numbers):
        return math.isfinite(value)
    lists = isinstance(before, int | list) and isinstance(value, int | list)  # eos_token_id: one or several
    return lists or type(before) is type(value)


def _unknown(name: str, config: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, [*config, *_OPTIONAL], 1)
    return " (the configuration has no such field" + (f"; did you mean {near[0]}?)" if near else ")")


def _check_size(overrides: Mapping[str, Any]) -> None:
    if sum(1 for _ in _values(overrides, 0)) > _MOST_VALUES:
        raise _invalid("hf_overrides", f"has more than {_MOST_VALUES} values")


def _values(value: Any, depth: int) -> Iterator[Any]:
    if depth > _DEEPEST:
        raise _invalid("hf_overrides", f"is nested deeper than {_DEEPEST}")
    yield value
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in inside:
        yield from _values(each, depth + 1)


def _invalid(name: str, why: str) -> ConfigError:
    return ConfigError(f"--hf-overrides: {name[:120]} {why}", reason="hf_overrides_invalid", param="hf_overrides")
