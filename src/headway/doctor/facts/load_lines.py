"""Statistics that serving programs print while they work, one pattern per program.

vLLM prints one line per engine and interval (the old engine with `Pending`/`Swapped` and a line of its own for prefix
hits); Headway prints vLLM's line; SGLang one per so many decode and prefill batches; TensorRT-LLM one per iteration;
llama.cpp one pair per finished request.
"""

from __future__ import annotations

from typing import Final

from headway.doctor.evidence.sight import Sight, sight

STATISTICS: Final = sight(
    "Avg prompt throughput",
    pattern=r"(?:Engine (?P<engine>\w+): )?Avg prompt throughput: (?P<prompt>\d+(?:\.\d+)?) tokens/s, Avg generation throughput: (?P<generation>\d+(?:\.\d+)?) tokens/s,"
    r" Running: (?P<running>\d+) reqs?,(?: Swapped: \d+ reqs?,)? (?:Waiting|Pending): (?P<waiting>\d+) reqs?"
    r"(?:.*?Preemptions: (?P<preemptions>\d+))?"
    r"(?:.*?(?:GPU |CPU )?KV cache usage: (?P<usage>\d+(?:\.\d+)?)%)?(?:.*?(?<!External )Prefix cache hit rate: (?:GPU: )?(?P<hits>\d+(?:\.\d+)?)%)?",
    series=True,
)
OLD_HITS: Final = sight("Prefix cache hit rate: GPU: ", pattern=r"Prefix cache hit rate: GPU: (?P<hits>\d+(?:\.\d+)?)%")
SGLANG_DECODE: Final = sight(
    "Decode batch",
    pattern=r"Decode batch[.,].*?#running-req: (?P<running>\d+)(?:.*?(?<!swa )(?<!mamba )token usage: (?P<usage>\d+(?:\.\d+)?))?"
    r"(?:.*?accept len: (?P<accepted>\d+(?:\.\d+)?))?(?:.*?gen throughput \(token/s\): (?P<generation>\d+(?:\.\d+)?))(?:.*?#queue-req: (?P<waiting>\d+))?",
    series=True,
)
SGLANG_PREFILL: Final = sight(
    "Prefill batch",
    pattern=r"Prefill batch[.,].*?#new-token: (?P<new>\d+), #cached-token: (?P<cached>\d+)(?:.*?input throughput \(token/s\): (?P<prompt>\d+(?:\.\d+)?))?",
    series=True,
)
TENSORRT_STEP: Final = sight(
    "num_scheduled_requests",
    pattern=r"iter = (?P<iteration>\d+).*?(?:currank_total_requests = (?P<waiting>\d+)/(?P<active>\d+).*?)?(?:host_step_time|elapsed_time) = (?P<step>\d+(?:\.\d+)?)(?P<unit>m?s)"
    r".*?num_scheduled_requests[:=] ?(?P<running>\d+).*?'num_ctx_tokens': (?P<context>\d+), 'num_generation_tokens': (?P<generated>\d+)",
    series=True,
)
LLAMA_PROMPT: Final = sight(
    "prompt eval time",
    pattern=r"prompt eval time = +(?P<ms>\d+(?:\.\d+)?) ms / +(?P<tokens>\d+) tokens.*?(?P<rate>\d+(?:\.\d+)?) tokens per second",
    series=True,
)
LLAMA_DECODE: Final = sight(
    "eval time = ", pattern=r"(?<!prompt )\beval time = +(?P<ms>\d+(?:\.\d+)?) ms / +(?P<tokens>\d+) (?:runs|tokens).*?(?P<rate>\d+(?:\.\d+)?) tokens per second", series=True
)
SIGHTS: Final[tuple[Sight, ...]] = (
    STATISTICS,
    OLD_HITS,
    SGLANG_DECODE,
    SGLANG_PREFILL,
    TENSORRT_STEP,
    LLAMA_PROMPT,
    LLAMA_DECODE,
)
