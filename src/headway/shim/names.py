"""The modules of the alias, and what each of their names means here. A table; `modules` makes modules of it."""

from __future__ import annotations

from collections.abc import Mapping

_LLM = "headway.engine.llm:LLM"
_PARAMS = "headway.engine.sampling_params:SamplingParams"
_POOLING = "headway.engine.pooling.pooling_params:PoolingParams"
_KINDS = "headway.engine.outputs:OutputKind"
_ARGS = "headway.shim.engine_args:EngineArgs"
_ASYNC_ARGS = "headway.shim.engine_args:AsyncEngineArgs"
_ASYNC = "headway.shim.async_llm:AsyncLLM"
_OUTPUTS = {
    "RequestOutput": "headway.engine.outputs:RequestOutput",
    "CompletionOutput": "headway.engine.outputs:CompletionOutput",
}
_BEAMS = {
    "BeamSearchOutput": "headway.engine.beam_search:BeamSearchOutput",
    "BeamSearchSequence": "headway.engine.beam_search:BeamSearchSequence",
}
_PROCESSORS = {
    name: f"headway.engine.logits_processor:{name}"
    for name in (
        "AdapterLogitsProcessor", "BatchUpdate", "LogitsProcessor", "MoveDirectionality", "RequestLogitsProcessor",
        "process_dict_updates",
    )
}  # fmt: skip
_PROMPTS = {"TextPrompt": "builtins:dict", "TokensPrompt": "builtins:dict"}  # typed dictionaries in vLLM
_VERSION = {"__version__": "headway.shim.version:ALIAS_VERSION"}

# module -> name -> "module:attribute". A module that is only on the way to another has no names.
MODULES: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "LLM": _LLM,
        "PoolingParams": _POOLING,
        "SamplingParams": _PARAMS,
        "EngineArgs": _ARGS,
        "AsyncEngineArgs": _ASYNC_ARGS,
        "AsyncLLMEngine": _ASYNC,
        **_OUTPUTS,
        **_PROMPTS,
        **_VERSION,
    },
    "vllm.version": _VERSION,
    "vllm.pooling_params": {"PoolingParams": _POOLING},
    "vllm.sampling_params": {
        "SamplingParams": _PARAMS,
        "RequestOutputKind": _KINDS,
        "StructuredOutputsParams": "headway.engine.structured.request:StructuredOutputs",
        "BeamSearchParams": "headway.engine.beam_search:BeamSearchParams",
    },
    "vllm.beam_search": _BEAMS,
    "vllm.config": {"VllmConfig": "headway.engine.config:EngineConfig"},  # what logits processors are given
    "vllm.lora": {},
    "vllm.lora.request": {"LoRARequest": "headway.engine.lora.lora_request:LoRARequest"},
    "vllm.outputs": _OUTPUTS,
    "vllm.inputs": _PROMPTS,
    "vllm.engine": {},
    "vllm.engine.arg_utils": {"EngineArgs": _ARGS, "AsyncEngineArgs": _ASYNC_ARGS},
    "vllm.engine.async_llm_engine": {"AsyncLLMEngine": _ASYNC},
    "vllm.v1": {},
    "vllm.v1.engine": {},
    "vllm.v1.sample": {},
    "vllm.v1.sample.logits_processor": _PROCESSORS,
    "vllm.v1.engine.async_llm": {"AsyncLLM": _ASYNC},
    "vllm.entrypoints": {},
    "vllm.entrypoints.llm": {"LLM": _LLM},
    "vllm.entrypoints.cli": {},
    "vllm.entrypoints.cli.main": {"main": "headway.cli.vllm:main"},
    "vllm.entrypoints.openai": {},
    "vllm.entrypoints.openai.api_server": {},
}
# `python -m MODULE` calls this.
PROGRAMS: Mapping[str, str] = {
    "vllm": "headway.cli.vllm:main",
    "vllm.entrypoints.cli.main": "headway.cli.vllm:main",
    "vllm.entrypoints.openai.api_server": "headway.cli.vllm:api_server",
}
