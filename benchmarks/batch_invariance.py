"""What --batch-invariant costs: the same work with and without it, in one process, taking turns.

    python benchmarks/batch_invariance.py
    python benchmarks/batch_invariance.py --dtype float32 --runs 9

Prints median seconds of: a prompt of 512 tokens; 64 tokens of one request; 64 tokens of 16 requests at once.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

from headway import LLM, SamplingParams


def prompts(count: int, length: int, dice: random.Random) -> list[dict[str, list[int]]]:
    return [{"prompt_token_ids": [dice.randrange(1000, 20_000) for _ in range(length)]} for _ in range(count)]


WORK: dict[str, tuple[int, int, int]] = {  # requests, prompt tokens, output tokens
    "prefill 512": (1, 512, 1),
    "decode, 1 request": (1, 16, 64),
    "decode, 16 requests": (16, 16, 64),
}


def seconds(llm: LLM, work: tuple[int, int, int], dice: random.Random) -> float:
    count, length, output = work
    asked = prompts(count, length, dice)
    params = SamplingParams(temperature=0, max_tokens=output, ignore_eos=True)
    start = time.perf_counter()
    llm.generate(asked, params, use_tqdm=False)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    engines = {
        key: LLM(arguments.model, dtype=arguments.dtype, batch_invariant=key == "invariant", max_model_len=1024)
        for key in ("plain", "invariant")
    }
    print(f"{arguments.model} {arguments.dtype}, in process, medians of {arguments.runs}")
    for name, work in WORK.items():
        taken: dict[str, list[float]] = {key: [] for key in engines}
        for run in range(arguments.runs + 1):
            for key, llm in engines.items():
                taken[key].append(seconds(llm, work, random.Random(run)))
        plain, invariant = (statistics.median(values[1:]) for values in taken.values())
        print(f"{name:20}  plain {plain:7.3f} s   invariant {invariant:7.3f} s   ratio {invariant / plain:5.2f}")


if __name__ == "__main__":
    main()
