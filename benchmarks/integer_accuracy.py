"""What integer kernels cost in accuracy: perplexity of the packaged text, beside the same weights dequantized to float32.

    PYTHONPATH=src python benchmarks/integer_accuracy.py [MODEL [int8|int4]] [--rounded]

MODEL is a GGUF, a packed checkpoint, or, with a method, an unquantized one. Rows: torch in float32 (the reference) and bfloat16; the
native kernels in both; with --rounded also float32 products of the same integers with activations of 8 bits that share a scale in groups
of 32, 64, 128 and whole rows, which tells what the rounding costs and what the kernels add.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from headway.artifacts.inspect import inspect
from headway.artifacts.tokenizer import load_tokenizer
from headway.evaluation.hidden_states import hidden_states
from headway.evaluation.texts import packaged_text
from headway.evaluation.token_scores import Head, token_logprobs
from headway.evaluation.tokenized_text import text_requests, tokenized
from headway.kernels.integer_reference import reference_integers
from headway.kernels.interface import Kernels
from headway.kernels.native.backend import native_kernels
from headway.kernels.native.library import native_library
from headway.kernels.torch_backend import TORCH
from headway.models.load import load_planned
from headway.models.native import NativePlan, plan_native

WIDTH = 512


def perplexity(plan: NativePlan, dtype: torch.dtype, kernels: Kernels) -> float:
    model = load_planned(plan, dtype, kernels=kernels)
    tokenizer = load_tokenizer(plan.card)
    requests = text_requests(tokenized(packaged_text(), tokenizer), WIDTH, WIDTH)
    head, total, count = Head(model.logits, tokenizer.vocab_size), 0.0, 0
    for batch, hidden in hidden_states(model, requests):
        targets = [target for request in batch for target in request.targets]
        total += float(token_logprobs(head, hidden, targets).sum())
        count += len(targets)
    return math.exp(-total / count)


def contenders(rounded: bool) -> Iterator[tuple[str, torch.dtype, Kernels]]:
    yield "torch float32", torch.float32, TORCH
    yield "torch bfloat16", torch.bfloat16, TORCH
    if rounded:
        for group in (32, 64, 128, 1 << 20):
            yield f"8 bits, groups of {group}", torch.float32, replace(TORCH, integers=reference_integers(group))
    library = native_library()
    for name in library.sets[:1]:
        for dtype in (torch.float32, torch.bfloat16):
            yield f"{name} {str(dtype).removeprefix('torch.')}", dtype, native_kernels(name, torch.get_num_threads())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2-135m-instruct")
    parser.add_argument("method", nargs="?", choices=["int8", "int4"])
    parser.add_argument("--rounded", action="store_true")
    asked = parser.parse_args()
    plan = replace(plan_native(inspect(asked.model), WIDTH), rounding=asked.method)
    reference = None
    for name, dtype, kernels in contenders(asked.rounded):
        share = plan.integers(kernels)
        found = perplexity(plan, dtype, kernels)
        reference = reference or found
        bits = f"{8 * share.nbytes / share.parameters:5.2f}" if share.parameters else "    -"
        print(f"{name:<26} bits of integer weights {bits}  perplexity {found:9.4f}  {100 * (found / reference - 1):+7.3f} %", flush=True)


if __name__ == "__main__":
    main()
