"""Ten questions about one state beside one question, read from the label probabilities of a decoder, in this process, in turns.

    python benchmarks/runtime_decisions.py
    python benchmarks/runtime_decisions.py --dtypes float32 --unshared --runs 9

Each reading is a request of its own, from the decoded body to the answers: planning, tokenizing, forward passes. Every state
is about `--tokens` long and new, so nothing of it was computed before; the questions are the same ones, about 50 tokens each with
the words around them. Figures are medians of milliseconds for a request; the ratio is that of ten questions to the one question
measured beside them, then its median. `--unshared` also asks the ten without sharing the state.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final

from headway.host.openmp import bound_spinning

bound_spinning(os.environ)  # before torch is imported

import torch  # noqa: E402
from quiet import add_reading_options, alternate, reading_options  # noqa: E402

from headway.artifacts.resolve import locate  # noqa: E402
from headway.runtime.decisions.label_logits.family import LabelLogitsFamily  # noqa: E402
from headway.runtime.family import Placement  # noqa: E402
from headway.runtime.loaded_model import LoadedModel  # noqa: E402
from headway.runtime.package import Package  # noqa: E402
from headway.wire.decision_body import read_decision_body  # noqa: E402
from runtime import WORDS  # noqa: E402

MODEL: Final = "smollm2-135m-instruct"
DTYPES: Final = ("float32", "bfloat16")
MOST: Final = 2.0  # times one question
TOPICS: Final = ("money", "a language", "the government", "water", "a school", "a number", "the night", "an account", "a policy", "a network")


def body(tokens: int, questions: int, seed: str) -> dict[str, Any]:
    """WORDS are one token each to nearly every vocabulary."""
    state = " ".join(random.Random(seed).choices(WORDS, k=tokens))
    asked = {f"q{i}": {"type": "noul", "instructions": f"Is this text about {topic}?"} for i, topic in enumerate(TOPICS[:questions])}
    return {"state": state, "questions": asked}


def load(reference: str, dtype: str, *, share: bool) -> LoadedModel:
    family, package = LabelLogitsFamily(), Package(reference, locate(reference).path)
    placement = Placement("cpu", dtype, enable_shared_context=share)  # type: ignore[arg-type]
    return family.load(package, family.describe(package), placement, lambda done, total: None)


def milliseconds(model: LoadedModel, tokens: int, questions: int, name: str) -> Callable[[int], float]:
    def work(run: int) -> float:
        fields = body(tokens, questions, f"{name} {run}")
        start = time.perf_counter()
        plan = model.planners["decisions"](read_decision_body(fields))
        rows = next(plan)
        try:
            plan.send(model.forward(rows))
        except StopIteration as done:
            answered = len(done.value["answers"])
        assert answered == questions
        return (time.perf_counter() - start) * 1000

    return work


def main() -> int:
    args = _arguments()
    torch.set_num_threads(args.threads)
    print(conditions(args))
    print(f"\n{'dtype':9} {'1 question':>12} {'10 questions':>13} {'ratio':>7} {'goal':>6} {'10, unshared':>13}  ms; readings; foreign CPU")
    failed = False
    for dtype in args.dtypes:
        shared = load(args.model, dtype, share=True)
        contenders = [(name, milliseconds(shared, args.tokens, count, name)) for name, count in (("one", 1), ("ten", 10))]
        if args.unshared:
            contenders.append(("unshared", milliseconds(load(args.model, dtype, share=False), args.tokens, 10, "unshared")))
        for _, work in contenders:
            work(-1)  # warm up
        readings = alternate(contenders, args.runs, **reading_options(args))
        one, ten = readings[:2]
        ratio = statistics.median(b / a for a, b in zip(one.values, ten.values, strict=True))
        failed |= ratio > MOST
        unshared = f"{readings[2].median:13.1f}" if args.unshared else f"{'':13}"
        spread = " ".join(f"{a:.0f}/{b:.0f}" for a, b in zip(one.values, ten.values, strict=True))
        foreign = max(max(each.foreign) for each in readings)
        print(f"{dtype:9} {one.median:12.1f} {ten.median:13.1f} {ratio:6.2f}x {MOST:5.1f}x {unshared}  {spread}; {foreign:.0%}", flush=True)
    return int(failed and args.strict)


def conditions(args: argparse.Namespace) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "tokenizers"))
    return (
        f"{datetime.now():%Y-%m-%d %H:%M}, in process, {args.model}, states of about {args.tokens} tokens, {args.threads} threads of"
        f" {os.cpu_count()} cores, {platform.processor() or platform.machine()}, python {platform.python_version()}, {versions};"
        f" {args.runs} readings in turns"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=MODEL, help="a language model: name in the registry, folder or GGUF file")
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=list(DTYPES), help=",".join(DTYPES))
    parser.add_argument("--unshared", action="store_true", help="also without sharing (slow)")
    add_reading_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
