"""What 50 heuristic rules add to a request, in this process: 40 keyword lists of 5 words, 5 context bands, 5 structure rules, ten decisions over them.

    python benchmarks/heuristic_rules.py
    python benchmarks/heuristic_rules.py --rounds 2000 --length 8000

Each round is a prompt of its own, from the decoded body to the decision: signals, projections, decisions with their traces. `hits` is the share of
its words that some keyword list has. Figures are medians (and 99th percentiles) of milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.router.config.document.document import Document
from headway.router.config.document.routing import Routing
from headway.router.decisions.engine import RecipeDecisions, compile_decisions
from headway.router.deployments.calls import Stage
from headway.router.projections.compiled import RecipeProjections, compile_projections
from headway.router.request.deadline import Deadline
from headway.router.request.view import RequestView
from headway.router.signals.extraction import SignalExtraction, compile_extraction
from headway.router.signals.kind import Recipe

_LETTERS = "etaoinshrdlucmfw"


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds. `signals` is the part of `p50` that the signals took; `matched` rules of the last prompt."""

    hits: float
    signals: float
    p50: float
    p99: float
    matched: int


class _NoStages:
    def open(self, deadline: Deadline) -> Stage:
        raise AssertionError("heuristic rules ask no model")


def heuristic_routing(rng: random.Random, vocabulary: Sequence[str]) -> dict[str, Any]:
    """`routing` of a configuration with the 50 rules and ten decisions that name all of them."""
    keywords = [{"name": f"keyword-{at}", "operator": "OR", "keywords": rng.sample(vocabulary, 5)} for at in range(40)]
    context = [{"name": f"context-{at}", "min_tokens": str(100 * at), "max_tokens": str(100 * at + 400)} for at in range(5)]
    limits = ["under", "at most", "at least", "within", "no more than"]
    features = [
        ("count", {"type": "regex", "pattern": "[?？]"}, {"gte": 3}),
        ("exists", {"type": "regex", "pattern": r"(?m)^\s*\d+\.\s+"}, None),
        ("sequence", {"type": "sequence", "sequences": [["first", "then"], ["first", "next", "finally"]]}, None),
        ("density", {"type": "keyword_set", "keywords": limits}, {"gt": 0.08}),
        ("count", {"type": "text_bytes"}, {"gt": 1000}),
    ]
    structure = [
        {"name": f"structure-{at}", "feature": {"type": type, "source": source}} | ({"predicate": predicate} if predicate else {})
        for at, (type, source, predicate) in enumerate(features)
    ]
    collections = {"keyword": keywords, "context": context, "structure": structure}
    leaves = [{"type": type, "name": rule["name"]} for type, rules in collections.items() for rule in rules]
    decisions = [{"name": f"decision-{at}", "priority": at, "rules": {"operator": "OR", "conditions": leaves[at::10]}} for at in range(10)]
    return {"signals": {"keywords": keywords, "context": context, "structure": structure}, "decisions": decisions}


def measure(rounds: int = 1000, length: int = 2000, hits: float = 0.02, seed: int = 3) -> Measured:
    """`rounds` prompts of `length` characters, of whose words a share of `hits` comes from the keyword lists."""
    rng = random.Random(seed)
    vocabulary = [_word(rng) for _ in range(400)]
    routing = heuristic_routing(rng, vocabulary)
    document = Document.model_validate({"version": "v0.3", "routing": routing})
    recipe = Recipe(document, document.routing or Routing())
    listed = sorted({word for rule in routing["signals"]["keywords"] for word in rule["keywords"]})
    prompts = [_prompt(rng, listed, length, hits) for _ in range(rounds)]
    return asyncio.run(_measure(recipe, prompts, hits))


async def _measure(recipe: Recipe, prompts: Sequence[str], hits: float) -> Measured:
    extraction, projections, decisions = compile_extraction(recipe, _NoStages()), compile_projections(recipe), compile_decisions(recipe)
    signals, whole = [], []
    for prompt in prompts:
        body = {"messages": [{"role": "user", "content": prompt}]}
        spent, matched = await _once(extraction, projections, decisions, body)
        signals.append(spent[0])
        whole.append(spent[1])
    return Measured(hits, statistics.median(signals), statistics.median(whole), statistics.quantiles(whole, n=100)[98], matched)


async def _once(
    extraction: SignalExtraction, projections: RecipeProjections, decisions: RecipeDecisions, body: Mapping[str, Any]
) -> tuple[tuple[float, float], int]:  # fmt: skip
    deadline = Deadline.after(60)
    began = time.perf_counter()
    observations = await extraction.observe(RequestView(body), deadline)
    observed = time.perf_counter()
    projections.apply(observations)
    decisions.decide(observations)
    ended = time.perf_counter()
    matched = sum(each.truth.name == "TRUE" for each in observations)
    return ((observed - began) * 1000, (ended - began) * 1000), matched


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(_LETTERS, k=rng.randint(4, 9)))


def _prompt(rng: random.Random, listed: Sequence[str], length: int, hits: float) -> str:
    words: list[str] = []
    while sum(map(len, words)) + len(words) < length:
        words.append(rng.choice(listed) if rng.random() < hits else _word(rng))
    return " ".join(words)[:length]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--length", type=int, default=2000, help="characters of a prompt")
    options = parser.parse_args()
    print("| hits | matched rules | signals p50 ms | with decisions p50 ms | p99 ms |")
    print("|---|---|---|---|---|")
    for hits in (0.0, 0.02, 0.2):
        found = measure(options.rounds, options.length, hits)
        print(f"| {found.hits:.0%} | {found.matched} | {found.signals:.3f} | {found.p50:.3f} | {found.p99:.3f} |")


if __name__ == "__main__":
    main()
