"""What answers with a form cost: tokens per second of a batch in which none, a fifth, and all of the requests have one, taking turns.

    python benchmarks/structured.py
    python benchmarks/structured.py --requests 64 --tokens 96 --runs 7

In process. Forms: an array of objects with strings and numbers, long enough that no answer ends before its last token, so every batch makes the same
number of tokens. Readings are thrown away while other processes are busy. Also prints the seconds that a schema takes the first time (new to the
engine, its compiling process running) and the time that the very first one took, which starts that process.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from functools import partial
from typing import Any

from quiet import add_reading_options, alternate, reading_options

from headway import LLM, SamplingParams

SHARES = (0.0, 0.2, 1.0)
GOAL = 0.9  # of the speed without forms, where a fifth of the requests has one


def schema(name: str) -> dict[str, Any]:
    place = {
        "type": "object", "required": [name, "population", "coastal"], "additionalProperties": False,
        "properties": {name: {"type": "string", "maxLength": 24}, "population": {"type": "integer"}, "coastal": {"type": "boolean"}},
    }  # fmt: skip
    return {"type": "array", "items": place, "minItems": 200}


def batch(requests: int, tokens: int, share: float) -> list[SamplingParams]:
    """Every fifth, say, spread evenly."""
    plain = {"temperature": 0.8, "max_tokens": tokens, "ignore_eos": True}
    formed = [int((i + 1) * share) > int(i * share) for i in range(requests)]
    return [SamplingParams(**plain, seed=i, structured_outputs={"json": schema("city")} if has else None) for i, has in enumerate(formed)]


def tokens_per_second(llm: LLM, params: list[SamplingParams], run: int) -> float:
    dice = random.Random(run)
    prompts = [{"prompt_token_ids": [dice.randrange(1000, 20_000) for _ in range(32)]} for _ in params]
    start = time.perf_counter()
    outputs = llm.generate(prompts, params, use_tqdm=False)
    return sum(len(o.outputs[0].token_ids) for o in outputs) / (time.perf_counter() - start)


def seconds_of_compiling(llm: LLM, name: str) -> float:
    start = time.perf_counter()
    llm.generate({"prompt_token_ids": [1]}, SamplingParams(max_tokens=1, structured_outputs={"json": schema(name)}), use_tqdm=False)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    add_reading_options(parser)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
    llm = LLM(arguments.model, dtype=arguments.dtype, max_model_len=1024)
    print(f"first schema {seconds_of_compiling(llm, 'first'):.2f} s, another {seconds_of_compiling(llm, 'another'):.3f} s")
    work = [(f"{share:.0%} with a form", batch(arguments.requests, arguments.tokens, share)) for share in SHARES]
    for _, params in work:
        tokens_per_second(llm, params, -1)
    contenders = [(name, partial(tokens_per_second, llm, params)) for name, params in work]
    readings = alternate(contenders, arguments.runs, **reading_options(arguments))
    print(f"{arguments.model} {arguments.dtype}, in process, {arguments.requests} requests of {arguments.tokens} tokens, medians of {arguments.runs}")
    for reading in readings:
        print(f"{reading.name:16}  {reading.median:8.1f} tokens/s   {reading.median / readings[0].median:5.2f} of none   disturbed {reading.disturbed}")
    if arguments.strict and readings[1].median < GOAL * readings[0].median:
        sys.exit(1)


if __name__ == "__main__":
    main()
