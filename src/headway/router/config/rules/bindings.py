"""Rules about bindings: which deployment answers for a consumer, and with what contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headway.router.config.diagnostics import Diagnostic, Path
from headway.router.config.document.deployments import ModelBinding, ModelDeployment
from headway.router.config.document.document import Document
from headway.router.config.document.model_signals import ClassifierSignalRule
from headway.router.config.document.routing import RecipeRouting
from headway.router.config.rules.profiles import did_you_mean, profiles
from headway.router.deployments.specification import catalog_of, declared

LABELS, SCORES, SPANS = "label_distribution.v1", "label_scores.v1", "token_spans.v1"
QUESTIONS = "decision.v1"

CONTRACTS: Mapping[str, tuple[str, ...]] = {
    "prompt_guard": (LABELS, QUESTIONS),
    "domain_classifier": (LABELS, QUESTIONS),
    "fact_check_classifier": (LABELS, QUESTIONS),
    "feedback_detector": (LABELS, QUESTIONS),
    "modality_detector": (LABELS, QUESTIONS),
    "pii_classifier": (SPANS, QUESTIONS),
    "hallucination_detector": (SPANS, QUESTIONS),
    "embedding": ("embedding.v1",),
    "complexity": ("score.v1", LABELS, QUESTIONS),
    "preference": (QUESTIONS, LABELS),
    "reask": (QUESTIONS,),
    "rag.reranker": ("relevance_scores.v1",),
}
"""Consumer -> contracts that it understands, the usual one first. `safety.<rule>`, `safety.<rule>.hazard` and `classifier.<rule>` follow the rule."""


def bindings(document: Document) -> Iterator[Diagnostic]:
    catalog = catalog_of(document)
    for consumer, binding in ((catalog.bindings if catalog else None) or {}).items():
        yield from _binding(consumer, binding, ("global", "model_catalog", "bindings", consumer), document, None)
    for profile in profiles(document):
        for consumer, binding in (profile.routing.model_bindings or {}).items():
            yield from _binding(consumer, binding, (*profile.path, "model_bindings", consumer), document, profile.routing)


def _binding(
    consumer: str, binding: ModelBinding, path: Path, document: Document, routing: RecipeRouting | None
) -> Iterator[Diagnostic]:
    """`routing` is the recipe that the binding stands in; None for those that hold for all recipes."""
    contracts = CONTRACTS.get(consumer) or _rule_contracts(consumer, routing)
    if contracts is None:
        where = " of this recipe" if routing is not None else ""
        message = f'"{consumer}" is nothing{where} that a model can be bound to'
        yield Diagnostic("consumer_unknown", message, path, did_you_mean(consumer, CONTRACTS))
        return
    if binding.contract not in contracts:
        message = f"{consumer} understands {' or '.join(contracts)}; found {binding.contract}"
        yield Diagnostic("contract_unfit", message, (*path, "contract"), did_you_mean(binding.contract, contracts))
    deployment = declared(document).get(binding.deployment)
    if deployment is None:
        message = f'{consumer} is bound to deployment "{binding.deployment}", which is not there'
        yield Diagnostic("deployment_unknown", message, (*path, "deployment"), did_you_mean(binding.deployment, declared(document)))
        return
    complaint = _complaint(consumer, binding, deployment)
    if complaint is not None:
        yield Diagnostic("binding_unfit", f"a binding does not match the model: {consumer}: {complaint}", path)


def _rule_contracts(consumer: str, routing: RecipeRouting | None) -> tuple[str, ...] | None:
    kind, _, name = consumer.partition(".")
    if kind not in ("safety", "classifier") or not name:
        return None
    if routing is None:
        return (LABELS, SCORES, QUESTIONS)
    signals = routing.signals
    if kind == "classifier":
        named: list[ClassifierSignalRule] = [rule for rule in (signals.classifiers if signals else None) or () if rule.name == name]
        return (LABELS, SCORES, QUESTIONS) if named else None
    for rule in (signals.safety if signals else None) or ():
        if rule.name == name:
            return (LABELS, QUESTIONS)
        if rule.hazard is not None and f"{rule.name}.hazard" == name:
            return (SCORES, QUESTIONS)
    return None


def _complaint(consumer: str, binding: ModelBinding, deployment: ModelDeployment) -> str | None:
    budget = deployment.input
    rejects = (budget.overflow if budget else None) in (None, "reject")
    if binding.operating_point is not None:
        if not consumer.startswith("classifier.") or binding.contract != SCORES:
            return f"operating_point is for classifiers with {SCORES}"
        if not (budget and budget.max_tokens) or not rejects:
            return "operating_point needs input.max_tokens and overflow reject: its thresholds were chosen for whole documents"
    elif consumer.startswith("classifier.") and binding.contract == SCORES:
        return f"{SCORES} needs an operating_point"
    if binding.pair_scorer is not None and consumer != "rag.reranker":
        return "pair_scorer is for rag.reranker"
    if consumer == "rag.reranker" and not rejects:
        return "pairs that are too long are rejected, not shortened: input.overflow is reject"
    return None
