"""`headway bench throughput` and `latency`: how fast a model generates in this process, without HTTP."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.bench.prompts import Prompt
from headway.engine.outputs import OutputKind
from headway.engine.sampling_params import SamplingParams
from headway.errors import HeadwayError

if TYPE_CHECKING:
    from headway.engine.async_engine import AsyncEngine
    from headway.engine.llm import LLM

LATENCY_PERCENTILES = (10, 25, 50, 75, 90, 99)


class GenerationFailedError(HeadwayError):
    """A sequence of a measured run ended in an error, so the run measures nothing."""

    reason = "generation_failed"


@dataclass(frozen=True, slots=True)
class Throughput:
    """One run over a list of prompts."""

    elapsed: float  # seconds
    requests: int
    prompt_tokens: int
    output_tokens: int

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.elapsed

    @property
    def tokens_per_second(self) -> float:
        return (self.prompt_tokens + self.output_tokens) / self.elapsed

    @property
    def output_tokens_per_second(self) -> float:
        return self.output_tokens / self.elapsed


def params_for(prompt: Prompt, n: int, *, detokenize: bool) -> SamplingParams:
    """Sampling that gives exactly `output_len` tokens."""
    return SamplingParams(
        n=n,
        temperature=1.0,
        top_p=1.0,
        ignore_eos=True,
        max_tokens=prompt.output_len,
        detokenize=detokenize,
        output_kind=OutputKind.FINAL_ONLY,
    )


def run_llm(llm: LLM, prompts: Sequence[Prompt], n: int, *, chat: bool, detokenize: bool, progress: bool) -> Throughput:
    """All prompts through LLM.generate (or LLM.chat), which queues them all before the first step."""
    params = [params_for(prompt, n, detokenize=detokenize) for prompt in prompts]
    start = time.perf_counter()
    if chat:
        talks = [[{"role": "user", "content": prompt.text}] for prompt in prompts]
        outputs = llm.chat(talks, params, use_tqdm=progress)
    else:
        ids = [{"prompt_token_ids": list(prompt.token_ids)} for prompt in prompts]
        outputs = llm.generate(ids, params, use_tqdm=progress)
    return _counted(time.perf_counter() - start, outputs)


async def run_async(engine: AsyncEngine, prompts: Sequence[Prompt], n: int, *, detokenize: bool) -> Throughput:
    """All prompts at once through AsyncEngine.generate, each consumed to its end."""

    async def last(index: int, prompt: Prompt) -> Any:
        final = None
        params = params_for(prompt, n, detokenize=detokenize)
        async for output in engine.generate(list(prompt.token_ids), params, f"bench-{index}"):
            final = output
        return final

    start = time.perf_counter()
    outputs = await asyncio.gather(*(last(index, prompt) for index, prompt in enumerate(prompts)))
    return _counted(time.perf_counter() - start, outputs)


def measure_latency(
    run: Callable[[], object], warmups: int, iterations: int, on_done: Callable[[], None] = lambda: None
) -> list[float]:
    """Seconds of each of `iterations` calls of `run`, after `warmups` that are not counted."""
    latencies = []
    for index in range(warmups + iterations):
        start = time.perf_counter()
        run()
        if index >= warmups:
            latencies.append(time.perf_counter() - start)
        on_done()
    return latencies


def random_batch(vocab_size: int, batch_size: int, input_len: int, output_len: int, seed: int = 0) -> list[Prompt]:
    """`batch_size` prompts of random token ids below 10,000 (as vLLM draws them)."""
    rng = random.Random(seed)
    top = min(vocab_size, 10_000)
    return [Prompt("", tuple(rng.randrange(top) for _ in range(input_len)), output_len) for _ in range(batch_size)]


def _counted(elapsed: float, outputs: Sequence[Any]) -> Throughput:
    failed = [o for o in outputs for choice in o.outputs if choice.finish_reason == "error"]
    if failed:
        raise GenerationFailedError(f"{len(failed)} of {len(outputs)} requests ended in an error; see the log for the cause")
    return Throughput(
        elapsed,
        len(outputs),
        sum(len(o.prompt_token_ids) for o in outputs),
        sum(len(choice.token_ids) for o in outputs for choice in o.outputs),
    )


def throughput_lines(result: Throughput) -> str:
    """What vLLM prints."""
    return (
        f"Throughput: {result.requests_per_second:.2f} requests/s, {result.tokens_per_second:.2f} total tokens/s, "
        f"{result.output_tokens_per_second:.2f} output tokens/s\n"
        f"Total num prompt tokens:  {result.prompt_tokens}\n"
        f"Total num output tokens:  {result.output_tokens}"
    )


def throughput_record(model: str, result: Throughput) -> dict[str, Any]:
    """The JSON of --output-json."""
    return {
        "model_id": model,
        "elapsed_time": result.elapsed,
        "num_requests": result.requests,
        "total_num_tokens": result.prompt_tokens + result.output_tokens,
        "requests_per_second": result.requests_per_second,
        "tokens_per_second": result.tokens_per_second,
    }


def latency_lines(average: float, percentiles: Mapping[int, float]) -> str:
    """What vLLM prints."""
    rows = [f"Avg latency: {average} seconds"]
    rows += [f"{percent}% percentile latency: {value} seconds" for percent, value in percentiles.items()]
    return "\n".join(rows)
