"""From the configuration that runs to that of the model which comes after it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headway.engine.config import EngineConfig
from headway.errors import ConfigError, RequestError

# What a swap may say besides the model. Paths, plug-ins and limits of the server stay those of its command line.
OPTIONS: Final = (
    "revision", "tokenizer", "tokenizer_revision", "tokenizer_mode", "load_format", "model_impl", "dtype", "quantization", "max_model_len",
    "hf_overrides", "generation_config", "override_generation_config", "kv_cache_memory_bytes", "kv_cache_dtype", "gpu_memory_utilization",
    "num_gpu_blocks_override", "enable_prefix_caching", "max_num_seqs", "max_num_batched_tokens", "seed",
)  # fmt: skip
# What says something about the old model only, and does not pass to another one.
_OF_ONE_MODEL: Final = frozenset(
    ["revision", "tokenizer", "tokenizer_revision", "hf_config_path", "hf_overrides", "generation_config", "quantization", "load_format", "mm_processor_kwargs"]
)


def next_config(now: EngineConfig, names: Sequence[str], fields: Mapping[str, Any]) -> EngineConfig:
    """`fields` are those of the request: `model`, and any of OPTIONS, named and written as for `LLM`. The rest stays as it is, and so do
    the names. Raises RequestError for a model that is no text, for unknown fields, and for values that cannot be used."""
    from headway.engine.arguments import engine_config  # with torch

    model = fields.get("model")
    if not isinstance(model, str) or not model:
        raise RequestError("model must name a model: a short name, a hub id, a folder or a file", param="model")
    unknown = sorted(fields.keys() - {"model", *OPTIONS})
    if unknown:
        raise RequestError(f"a swap has no field {unknown[0][:40]!r}; it takes model, {', '.join(OPTIONS)}", param=unknown[0][:40])
    kept = {f.name: getattr(now, f.name) for f in dataclasses.fields(now) if f.name != "model"}
    if model != now.model:
        kept = {name: value for name, value in kept.items() if name not in _OF_ONE_MODEL}
    given = {name: value for name, value in fields.items() if name != "model"}
    try:
        return engine_config(model, {**kept, **given, "served_model_name": tuple(names)})
    except ConfigError as error:
        raise RequestError(error.message, param=error.param) from None
