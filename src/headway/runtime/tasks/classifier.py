"""A classifier in memory: which head it has, how long input is treated, and what else it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headway.decisions.planner import decisions_planner
from headway.errors import ArtifactError, PackageError
from headway.quantization.weight_reader import WeightReader
from headway.runtime.family import Placement
from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import HeadFacts, ModelFacts, RerankExit, RerankFacts
from headway.runtime.readers.decision_limits import MAX_OPTIONS, MIN_OPTIONS
from headway.runtime.tasks import operating_point, rerank, sequence_head, token_head
from headway.runtime.tasks.classify import ClassifyHead, ClassifyPlanner
from headway.runtime.tasks.entailment_reader import EntailmentReader, entailment_label
from headway.runtime.tasks.grounded_head import GroundedHead
from headway.runtime.tasks.head import Head, load_head
from headway.runtime.tasks.labels import labels_of
from headway.runtime.tasks.limits import MAX_DOCUMENTS, MAX_INPUTS
from headway.runtime.tasks.loaded_parts import LoadedParts, Progress, load_parts
from headway.runtime.tasks.long_input import DEFAULT_SCAN, HeadLimits, default_window
from headway.runtime.tasks.options import max_scan_tokens, word_strategy
from headway.runtime.tasks.readouts import Pooling, logits_readout, token_readout
from headway.runtime.tasks.sequence_head import SequenceHead
from headway.runtime.tasks.sequence_text import SequenceText
from headway.runtime.tasks.task_package import TaskPackage
from headway.runtime.tasks.token_head import TokenHead

HEAD_NAME: Final = "default"


def classifier_surfaces(found: TaskPackage) -> tuple[Surface, ...]:
    """One logit is a relevance; labels of entailment answer questions too."""
    labels = _labels(found)
    if found.task == "sequence" and len(labels) == 1:
        return ("rerank",)
    if found.task == "sequence" and _kind(found) == "sequence" and entailment_label(labels) is not None:
        return ("classify", "decisions")
    return ("classify",)


def load_classifier(found: TaskPackage, placement: Placement, progress: Progress) -> LoadedModel:
    """Raises ArtifactError for heads that cannot be read as their files say."""
    surfaces = classifier_surfaces(found)
    point = found.package.json(operating_point.FILE)
    _check_point(found, point)
    parts = load_parts(found, placement, progress)
    if surfaces != ("classify",):
        _ = parts.text.pair  # a tokenizer without a template for pairs is refused now, not at the first request
    assert found.head is not None
    with WeightReader(found.plan.card) as reader:
        head = load_head(reader, found.plan.card.tensors, found.head, found.plan.prefix, found.config)
    if surfaces == ("rerank",):
        return _reranker(parts, head)
    facts, limits, task_head = _classify_head(parts, point)
    card_limits = {"max_input_tokens": limits.limit, "max_inputs": MAX_INPUTS, "max_scan_tokens": limits.scan}
    if "window" not in task_head.policies:
        del card_limits["max_scan_tokens"]
    model_facts = ModelFacts(found.parameters, placement.dtype, card_limits, heads=(facts,))
    planners: dict[Surface, Planner] = {"classify": ClassifyPlanner([task_head])}
    if "decisions" in surfaces:
        # The scan budget is one of windows, which questions are not read in.
        asked = {"max_input_tokens": limits.limit, "min_options": MIN_OPTIONS, "max_options": MAX_OPTIONS}
        entailment = entailment_label(facts.labels)
        assert entailment is not None
        planners["decisions"] = decisions_planner(EntailmentReader(parts.text, entailment), replace(model_facts, limits=asked))
        model_facts = replace(model_facts, limits=card_limits | asked, question_types=("choice", "noul"))
    if found.task == "token":
        return parts.model({token_head.READOUT: token_readout(head)}, model_facts, planners, [(token_head.READOUT, None)])
    readout = logits_readout(head, _pooling(found.config))
    return parts.model({sequence_head.READOUT: readout}, model_facts, planners, [(sequence_head.READOUT, None)])


def _reranker(parts: LoadedParts, head: Head) -> LoadedModel:
    last = RerankExit(parts.encoder.num_layers, parts.encoder.hidden_size)
    rerank_facts = RerankFacts((last,), last)
    limits = {"max_input_tokens": parts.text.limit, "max_inputs": MAX_DOCUMENTS}
    facts = ModelFacts(parts.found.parameters, parts.dtype, limits, rerank=rerank_facts)
    name = rerank.scorer_name(last)
    planner = rerank.RerankPlanner(rerank_facts, parts.text, parts.encoder.num_layers)
    return parts.model({name: logits_readout(head, _pooling(parts.found.config))}, facts, {"rerank": planner}, [(name, None)])


def _classify_head(parts: LoadedParts, point: Mapping[str, Any] | None) -> tuple[HeadFacts, HeadLimits, ClassifyHead]:
    found, text = parts.found, parts.text
    labels = _labels(found)
    digest = operating_point.sha256_of(found.package.path) if point is not None else None
    window = default_window(text.limit, text.single.size)
    if found.task == "token" and point is not None:
        grounded = operating_point.grounded_point(point, labels)
        limit = min(text.limit, grounded.max_input_tokens or text.limit)
        limits = HeadLimits(limit, limit, limit, text.pair.size)
        facts = HeadFacts(HEAD_NAME, "token", labels, ("grounded",), default_threshold=grounded.threshold, operating_point_sha256=digest)
        return facts, limits, GroundedHead(facts, limits, text, grounded)
    scan = max(DEFAULT_SCAN, text.limit)
    if found.task == "token":
        facts = HeadFacts(HEAD_NAME, "token", labels, window=window, reduction="span_union")
        limits = _limits(parts, scan)
        return facts, limits, TokenHead(facts, limits, text, word_strategy(parts.options))
    kind = _kind(found)
    facts = HeadFacts(HEAD_NAME, kind, labels, _inputs(text), window=window, reduction="max")
    scores = operating_point.score_point(point, labels) if point is not None else None
    if scores is not None:
        facts = replace(facts, thresholds=scores.thresholds, operating_point_sha256=digest)
        if scores.window is not None:
            _check_window(scores.window.tokens, text.limit)
            facts = replace(facts, window=scores.window, overflow="window")
            scan = scores.max_document_tokens or scan
    limits = _limits(parts, scan)
    return facts, limits, SequenceHead(facts, limits, text, scores)


def _limits(parts: LoadedParts, scan: int) -> HeadLimits:
    limit = parts.text.limit
    return HeadLimits(limit, limit, max_scan_tokens(parts.options, scan, limit), parts.text.single.size)


def _inputs(text: SequenceText) -> tuple[str, ...]:
    """Pairs only if the tokenizer has a template for them."""
    try:
        return ("text", "text_pair") if text.pair.between else ("text",)
    except ArtifactError:
        return ("text",)


def _labels(found: TaskPackage) -> tuple[str, ...]:
    assert found.head is not None
    return labels_of(found.config, found.plan.card.tensors[f"{found.head.out}.weight"].shape[0])


def _kind(found: TaskPackage) -> Any:
    """Raises PackageError for a problem type that is not built."""
    stated = found.config.get("problem_type")
    if stated in (None, "single_label_classification"):
        return "sequence"
    if stated == "multi_label_classification":
        return "scores"
    raise PackageError(f"config.json: problem_type {stated!r:.60} of a head with several logits is not built; known are"
                       " single_label_classification and multi_label_classification",
                       reason="unsupported_problem_type", param="problem_type")  # fmt: skip


def _pooling(config: Mapping[str, Any]) -> Pooling:
    stated = config.get("classifier_pooling", "cls")
    if stated in ("cls", "mean"):
        pooling: Pooling = stated
        return pooling
    raise PackageError(f"config.json: classifier_pooling must be cls or mean, found {stated!r:.60}",
                       reason="invalid_model_config", param="classifier_pooling")  # fmt: skip


def _check_point(found: TaskPackage, point: Mapping[str, Any] | None) -> None:
    """Raises PackageError for an operating point beside a head that has no use for one."""
    if point is not None and found.task == "sequence" and (len(_labels(found)) == 1 or _kind(found) == "sequence"):
        raise PackageError("operating_point.json belongs to multi-label heads (problem_type: multi_label_classification) and to token"
                           " classifiers that read pairs; this head has one distribution over its labels",
                           reason="operating_point_invalid", param=operating_point.FILE, fix="Remove the file, or set problem_type.")  # fmt: skip


def _check_window(tokens: int, limit: int) -> None:
    if tokens > limit:
        raise PackageError(f"operating_point.json: windows of {tokens} tokens, the encoder reads {limit}",
                           reason="operating_point_invalid", param=operating_point.FILE)  # fmt: skip
