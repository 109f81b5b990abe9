"""Every selection algorithm by its type, and how a decision's is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headway.errors import ConfigError
from headway.router.config.document.algorithms import Algorithm as Settings
from headway.router.config.document.algorithms import (
    ConfidenceAlgorithm,
    HybridSelection,
    LatencyAwareAlgorithm,
    MultiFactorSelection,
    RouterDCSelection,
)
from headway.router.config.document.decisions import Decision
from headway.router.config.document.router_settings import ModelSelection
from headway.router.embedding.embedder import Embedder
from headway.router.embedding.source import embedding_deployment, required_embedding
from headway.router.generation.services import Services
from headway.router.selection.affinity.keeper import compile_keeper
from headway.router.selection.candidates import Candidate, candidates_of
from headway.router.selection.cascade import Cascade
from headway.router.selection.decision_model import DecisionModel
from headway.router.selection.factors import domain_scores
from headway.router.selection.fixed import Random, Static
from headway.router.selection.hand_off import HandOff, compile_hand_off
from headway.router.selection.hybrid import Hybrid
from headway.router.selection.latency_aware import LatencyAware
from headway.router.selection.multi_factor import MultiFactor
from headway.router.selection.ranking import Algorithm
from headway.router.selection.requirements import Requirements
from headway.router.selection.router_dc import RouterDC
from headway.router.selection.selector import DecisionSelector
from headway.router.selection.trained.artifact import load
from headway.router.selection.trained.selector import TrainedSelector
from headway.router.signals.asking.answerer import decision_model
from headway.router.signals.kind import Recipe


@dataclass(frozen=True, slots=True)
class Making:
    """What algorithms are made of."""

    type: str
    settings: Settings | None
    candidates: Sequence[Candidate]
    recipe: Recipe
    services: Services

    @property
    def shared(self) -> ModelSelection:
        """`global.router.model_selection`."""
        return model_selection(self.recipe)

    @property
    def domains(self) -> Mapping[str, Mapping[str, float]]:
        return domain_scores(self.recipe.routing)


def compile_selector(decision: Decision, recipe: Recipe, services: Services) -> DecisionSelector | HandOff:
    """Raises ConfigError."""
    if decision.action is not None:
        return compile_hand_off(decision, recipe)
    candidates = candidates_of(decision, recipe)
    kind = _type(decision, recipe, len(candidates))
    algorithm = MAKERS[kind](Making(kind, decision.algorithm, candidates, recipe, services))
    requirements = Requirements.of(recipe.routing.candidate_requirements)
    strict = decision.algorithm is not None and decision.algorithm.on_error == "fail"
    least = (decision.algorithm.minimum_candidates if decision.algorithm is not None else None) or 1
    return DecisionSelector(candidates, algorithm, requirements, strict, least, compile_keeper(decision, recipe, services))


def model_selection(recipe: Recipe) -> ModelSelection:
    router = recipe.document.global_.router if recipe.document.global_ else None
    return (router.model_selection if router else None) or ModelSelection()


def _type(decision: Decision, recipe: Recipe, candidates: int) -> str:
    if decision.algorithm is not None:
        return str(decision.algorithm.type)
    shared = model_selection(recipe)
    return str(shared.method) if shared.method is not None and shared.enabled and candidates > 1 else "static"


def _latency_aware(making: Making) -> Algorithm:
    given = (making.settings.latency_aware if making.settings else None) or LatencyAwareAlgorithm(tpot_percentile=50)
    return LatencyAware(making.services.latencies, given.tpot_percentile, given.ttft_percentile)


def _multi_factor(making: Making) -> Algorithm:
    given = (making.settings.multi_factor if making.settings else None) or MultiFactorSelection()
    return MultiFactor(given, making.services.latencies, making.services.activity, making.domains)


def _router_dc(making: Making) -> RouterDC:
    given = (making.settings.router_dc if making.settings else None) or making.shared.router_dc or RouterDCSelection()
    return RouterDC(given, required_embedding(making.recipe, "algorithm router_dc"), making.candidates, making.recipe.vectors)


def _hybrid(making: Making) -> Algorithm:
    given = (making.settings.hybrid if making.settings else None) or making.shared.hybrid or HybridSelection()
    likeness = _router_dc(making) if given.router_dc_weight and embedding_deployment(making.recipe) is not None else None
    return Hybrid(given, making.services.activity, likeness, making.domains)


def _decision(making: Making) -> Algorithm:
    given = making.settings.decision if making.settings else None
    if given is None:
        raise ConfigError("algorithm decision needs its settings", param="algorithm.decision", fix="Add decision: {instructions: ...}.")
    return DecisionModel(given, given.deployment or decision_model(making.recipe))


def _confidence(making: Making) -> Algorithm:
    return Cascade((making.settings.confidence if making.settings else None) or ConfidenceAlgorithm(), making.domains)


def _trained(making: Making) -> Algorithm:
    ml, name = making.shared.ml, making.type
    own = getattr(ml, name, None) if ml is not None else None
    folder = own.pretrained_path if own is not None and own.pretrained_path else (ml.models_path if ml is not None else None)
    if not folder:
        raise ConfigError(
            f"algorithm {name} needs a trained selector",
            param="global.router.model_selection.ml.models_path",
            fix=f"Train one with vllm-sr optimize train --algorithm {name} --output DIR, and set models_path: DIR.",
        )
    given = making.recipe.document.place(folder)
    place = given if own is not None and own.pretrained_path else given / name
    trained = load(place)
    if trained.description.algorithm != name:
        raise ConfigError(f"the trained selector in {place} is a {trained.description.algorithm}, expected {name}", reason="selector_unusable")
    return TrainedSelector(name, trained, Embedder(required_embedding(making.recipe, f"algorithm {name}"), making.recipe.vectors))


MAKERS: Mapping[str, Callable[[Making], Algorithm]] = {
    "static": lambda making: Static(making.domains),
    "random": lambda making: Random(),
    "latency_aware": _latency_aware,
    "multi_factor": _multi_factor,
    "router_dc": _router_dc,
    "hybrid": _hybrid,
    "decision": _decision,
    "confidence": _confidence,
    "knn": _trained,
    "kmeans": _trained,
    "svm": _trained,
    "mlp": _trained,
}
