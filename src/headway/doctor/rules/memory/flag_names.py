"""What a setting is called by the program of the case."""

from __future__ import annotations

from typing import Final, Literal

from headway.doctor.case import Case

Setting = Literal["share", "length", "split", "sequences", "step", "eager"]

_NAMES: Final[dict[Setting, dict[str, str]]] = {
    "share": {"": "--gpu-memory-utilization", "sglang": "--mem-fraction-static", "tensorrt-llm": "--kv_cache_free_gpu_memory_fraction"},
    "length": {"": "--max-model-len", "sglang": "--context-length", "tensorrt-llm": "--max_seq_len", "llama.cpp": "-c"},
    "split": {"": "--tensor-parallel-size", "sglang": "--tp-size", "tensorrt-llm": "--tp_size"},
    "sequences": {"": "--max-num-seqs", "sglang": "--max-running-requests", "tensorrt-llm": "--max_batch_size", "llama.cpp": "-np"},
    "step": {"": "--max-num-batched-tokens", "sglang": "--chunked-prefill-size", "tensorrt-llm": "--max_num_tokens", "llama.cpp": "-ub"},
    "eager": {"": "--enforce-eager", "sglang": "--disable-cuda-graph"},
}


def flag(case: Case, setting: Setting, value: object = None) -> str:
    """`--max-model-len 4096`, in the words of this program."""
    names = _NAMES[setting]
    name = names.get(case.launch.program, names[""])
    return name if value is None else f"{name} {value}"
