"""Rules about how decisions choose among their models."""

from __future__ import annotations

from collections.abc import Iterator

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.algorithms import Algorithm
from headway.router.config.document.decisions import Decision
from headway.router.config.document.document import Document
from headway.router.config.rules.profiles import decisions, model_cards

_BLOCKS = ("confidence", "router_dc", "hybrid", "latency_aware", "multi_factor", "decision")
"""Settings of one algorithm each; the block is called like the type."""
_NEEDS_BLOCK = frozenset({"latency_aware", "decision"})
_HYBRID_DEFAULTS = {"experience_weight": 0.3, "router_dc_weight": 0.3, "automix_weight": 0.2, "cost_weight": 0.2}


def algorithms(document: Document) -> Iterator[Diagnostic]:
    for _, path, decision in decisions(document):
        algorithm = decision.algorithm
        if algorithm is None:
            continue
        place: Path = (*path, "algorithm")
        whose = f'decision "{decision.name}"'
        yield from _blocks(algorithm, place, whose)
        yield from _settings(algorithm, place, whose)
        yield from _candidates(decision, algorithm, place, whose)
        if algorithm.router_dc is not None and algorithm.router_dc.require_descriptions:
            yield from _descriptions(decision, document, path, whose)


def _blocks(algorithm: Algorithm, place: Path, whose: str) -> Iterator[Diagnostic]:
    given = [name for name in _BLOCKS if getattr(algorithm, name) is not None]
    for name in given:
        if name != algorithm.type:
            message = f"{whose} has settings of {name}, but its algorithm is {algorithm.type or 'not named'}"
            yield Diagnostic("algorithm_block", message, (*place, name), "Keep the block of the algorithm that type names")
    if algorithm.type in _NEEDS_BLOCK and algorithm.type not in given:
        yield Diagnostic("algorithm_block", f"{whose}: algorithm {algorithm.type} needs its settings", (*place, "type"), f"Add {algorithm.type}: ...")


def _settings(algorithm: Algorithm, place: Path, whose: str) -> Iterator[Diagnostic]:
    latency = algorithm.latency_aware
    if latency is not None and not latency.tpot_percentile and not latency.ttft_percentile:
        message = f"{whose}: latency_aware compares tpot_percentile or ttft_percentile, from 1 to 100; found neither"
        yield Diagnostic("percentile_missing", message, (*place, "latency_aware"))
    hybrid = algorithm.hybrid
    if hybrid is not None:
        weights = [default if getattr(hybrid, name) is None else getattr(hybrid, name) for name, default in _HYBRID_DEFAULTS.items()]
        if sum(weights) <= 0:
            yield Diagnostic("weights_zero", f"{whose}: one of the weights of hybrid has to be more than 0", (*place, "hybrid"))


def _candidates(decision: Decision, algorithm: Algorithm, place: Path, whose: str) -> Iterator[Diagnostic]:
    distinct = {(ref.model, ref.lora_name) for ref in decision.modelRefs or ()}
    least = algorithm.minimum_candidates
    if least is not None and decision.modelRefs and len(distinct) < least:
        message = f"{whose} needs at least {least} candidates; it has {len(distinct)} distinct modelRefs"
        yield Diagnostic("candidates_missing", message, (*place, "minimum_candidates"))


def _descriptions(decision: Decision, document: Document, path: Path, whose: str) -> Iterator[Diagnostic]:
    cards = model_cards(document)
    for index, ref in enumerate(decision.modelRefs or ()):
        card = cards.get(ref.model or "")
        if card is None or not card.description:
            message = f'{whose}: router_dc with require_descriptions needs a description of model "{ref.model}"'
            yield Diagnostic("description_missing", message, (*path, "modelRefs", index), "Write it in routing.modelCards")
