"""Embedders, and rerankers with trained exits, in memory."""

from __future__ import annotations

from dataclasses import replace

from headway.runtime.family import Placement
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.tasks.classify import ClassifyPlanner
from headway.runtime.tasks.embeddings import READOUT, EmbeddingsPlanner, embedding_facts
from headway.runtime.tasks.limits import MAX_DOCUMENTS, MAX_INPUTS
from headway.runtime.tasks.loaded_parts import Progress, load_parts
from headway.runtime.tasks.long_input import DEFAULT_SCAN
from headway.runtime.tasks.options import max_scan_tokens, pair_scorer, pair_scorers, served_layers
from headway.runtime.tasks.readouts import logits_readout, pooled_readout
from headway.runtime.tasks.relevance import exit_heads, rerank_facts
from headway.runtime.tasks.rerank import RerankPlanner, scorer_name
from headway.runtime.tasks.sentence_heads import LAYOUT, classify_heads, head_readouts, read_sentence_heads
from headway.runtime.tasks.sentence_layout import read_sentence_layout
from headway.runtime.tasks.task_package import RELEVANCE_LAYOUT, TaskPackage


def load_embedder(found: TaskPackage, placement: Placement, progress: Progress) -> LoadedModel:
    """Raises ArtifactError for a layout that is not built."""
    plan = found.plan
    layout = read_sentence_layout(found.package, plan.hidden_size, plan.num_layers, served_layers(placement.options))
    parts = load_parts(found, placement, progress)
    parts.encoder.norm_exits = layout.normed_exits
    limits = {"max_input_tokens": parts.text.limit, "max_inputs": MAX_INPUTS}
    readouts = {READOUT: pooled_readout(layout.pooling)}
    planners: dict[Surface, Planner] = {"embeddings": EmbeddingsPlanner(layout, parts.text)}
    exits: list[tuple[str, int | None]] = [(READOUT, None), *((READOUT, layer) for layer in layout.layers[1:])]
    facts = ModelFacts(found.parameters, placement.dtype, limits, embedding=embedding_facts(layout))
    if found.scorers is not None:
        heads = read_sentence_heads(found.package.json(LAYOUT) or {}, found.scorers, plan.hidden_size)
        classifiers = classify_heads(heads, parts.text, max_scan_tokens(placement.options, DEFAULT_SCAN, parts.text.limit))
        readouts |= head_readouts(heads, found.scorers, layout.pooling)
        planners["classify"] = ClassifyPlanner(classifiers)
        exits += [(head.readout, None) for head in heads]
        facts = replace(facts, heads=tuple(head.facts for head in classifiers), limits=limits | {"max_scan_tokens": classifiers[0].limits.scan})
    return parts.model(readouts, facts, planners, exits)


def load_relevance(found: TaskPackage, placement: Placement, progress: Progress) -> LoadedModel:
    """Raises ArtifactError for a layout or heads that are not whole."""
    plan, scorers = found.plan, found.scorers
    assert scorers is not None
    trained = rerank_facts(
        found.package.json(RELEVANCE_LAYOUT) or {}, found.config, scorers, plan.hidden_size, plan.num_layers,
        pair_scorer(placement.options), pair_scorers(placement.options),
    )  # fmt: skip
    parts = load_parts(found, placement, progress)
    _ = parts.text.pair  # a tokenizer without a template for pairs is refused now, not at the first request
    heads = exit_heads(scorers, trained)
    readouts = {scorer_name(each): logits_readout(heads[scorer_name(each)], "cls", each.dimension) for each in trained.exits}
    facts = ModelFacts(found.parameters, placement.dtype, {"max_input_tokens": parts.text.limit, "max_inputs": MAX_DOCUMENTS}, rerank=trained)
    exits = [(scorer_name(each), each.layer if each.layer < plan.num_layers else None) for each in trained.exits]
    return parts.model(readouts, facts, {"rerank": RerankPlanner(trained, parts.text, plan.num_layers)}, exits)
