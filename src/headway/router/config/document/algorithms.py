"""Algorithms of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from headway.router.config.document.node import Node

Share = Annotated[float, Field(ge=0, le=1)]


class RouterDCSelection(Node):
    """`temperature` scales the softmax over similarities; below `min_similarity` a model is no match."""

    absent: ClassVar[Mapping[str, str]] = {
        "dimension_size": "vectors have the embedding model's own size",
        "use_query_contrastive": "nothing is trained: requests are compared with the descriptions of the models",
        "use_model_contrastive": "nothing is trained: requests are compared with the descriptions of the models",
    }

    temperature: float = Field(default=0.07, gt=0)
    min_similarity: Share = 0.3
    require_descriptions: bool = False
    use_capabilities: bool = True


class HybridSelection(Node):
    """`experience` is the share of a model's requests that it answered, `automix` the value of its quality less its cost; scores are spread to 0..1
    with `normalize_scores`. Among models within `quality_gap_threshold` of the best score the cheapest is taken."""

    experience_weight: Share = 0.3
    router_dc_weight: Share = 0.3
    automix_weight: Share = 0.2
    cost_weight: Share = 0.2
    quality_gap_threshold: Share = 0.1
    normalize_scores: bool = True


class HybridWeights(Node):
    logprob_weight: float = Field(default=0.5, ge=0)
    margin_weight: float = Field(default=0.5, ge=0)

    @model_validator(mode="after")
    def _some(self) -> HybridWeights:
        if self.logprob_weight + self.margin_weight <= 0:
            raise ValueError("one of the weights has to be more than 0")
        return self


class ConfidenceAlgorithm(Node):
    """A cascade: the next model is asked while an answer's confidence is below `threshold`.

    `avg_logprob` is the mean log probability of the answer's tokens (threshold -1), `margin` the mean difference between the log probabilities of
    the two likeliest tokens (0.5), `hybrid` a weighted mean of both, each brought to 0..1 (0.5). After a failure `skip` goes on to the next model.
    """

    absent: ClassVar[Mapping[str, str]] = {
        "verifier_server_url": "verifiers are not built; use avg_logprob, margin or hybrid",
        "verifier_timeout_seconds": "verifiers are not built; use avg_logprob, margin or hybrid",
        "token_filter": "every token of the answer counts",
        "max_response_bytes": "answers have at most 64 MiB",
    }

    confidence_method: Literal["avg_logprob", "margin", "hybrid"] = "avg_logprob"
    threshold: float | None = None
    hybrid_weights: HybridWeights = HybridWeights()
    on_error: Literal["skip", "fail"] | None = None
    escalation_order: Literal["size", "small_to_large", "declared", "cost", "automix"] = "size"
    cost_quality_tradeoff: Share = 0.3


class LatencyAwareAlgorithm(Node):
    tpot_percentile: int | None = Field(default=None, ge=0, le=100)
    ttft_percentile: int | None = Field(default=None, ge=0, le=100)
    description: str | None = None


class MultiFactorPriority(Node):
    factor: Literal["quality", "latency", "cost", "load"]
    tolerance: Share = 0.0


class MultiFactorObjective(Node):
    """`lexicographic` compares factor by factor, in the order of `priorities`; within `tolerance` models count as equal."""

    strategy: Literal["weighted", "lexicographic"] = "weighted"
    priorities: list[MultiFactorPriority] | None = None

    @model_validator(mode="after")
    def _fits(self) -> MultiFactorObjective:
        factors = [priority.factor for priority in self.priorities or ()]
        if (self.strategy == "lexicographic") != bool(factors):
            raise ValueError("priorities belong to strategy lexicographic, and it needs them")
        if len(set(factors)) != len(factors):
            raise ValueError("priorities name a factor twice")
        return self


class MultiFactorWeights(Node):
    quality: float | None = Field(default=None, ge=0)
    latency: float | None = Field(default=None, ge=0)
    cost: float | None = Field(default=None, ge=0)
    load: float | None = Field(default=None, ge=0)


class MultiFactorSLO(Node):
    """A model over one of these is no candidate."""

    max_tpot_ms: float | None = Field(default=None, ge=0)
    max_ttft_ms: float | None = Field(default=None, ge=0)
    max_cost_per_1m: float | None = Field(default=None, ge=0)
    max_inflight: int | None = Field(default=None, ge=0)


class MultiFactorSelection(Node):
    """Weights left out of a block that names some are 0; without a block each is 0.25."""

    absent: ClassVar[Mapping[str, str]] = {
        "quality": "indices of benchmarks are not built; a model's quality is its model_scores in the matched domain, else the weight of its modelRef",
    }

    objective: MultiFactorObjective | None = None
    weights: MultiFactorWeights | None = None
    slo: MultiFactorSLO | None = None
    expected_output_tokens: int | None = Field(default=None, ge=1)
    latency_percentile: int = Field(default=95, ge=1, le=100)
    latency_metric: Literal["ttft", "tpot"] | None = None
    on_no_candidates: Literal["cheapest", "first", "fail"] = "cheapest"

    @model_validator(mode="after")
    def _one_objective(self) -> MultiFactorSelection:
        if self.objective is not None and self.objective.strategy == "lexicographic" and self.weights is not None:
            raise ValueError("weights do not belong to a lexicographic objective")
        return self


class DecisionSelection(Node):
    """A decision model chooses: `candidates` describes models by name, else their cards do."""

    deployment: str | None = None
    instructions: str = Field(pattern=r"\S")
    candidates: dict[str, str] | None = None
    timeout_ms: int | None = Field(default=None, ge=0, le=60_000)


ALGORITHM_TYPES = (
    "confidence",
    "decision",
    "hybrid",
    "kmeans",
    "knn",
    "latency_aware",
    "mlp",
    "multi_factor",
    "random",
    "router_dc",
    "static",
    "svm",
)


def _lower(name: Any) -> Any:
    return name.strip().lower() if isinstance(name, str) else name


class Algorithm(Node):
    """How a decision chooses among its modelRefs: `type`, and the block of settings that is called like it.

    When the algorithm has nothing to go by (a model that it asks does not answer), `skip` takes the declared order, `fail` answers with an error.
    When fewer than `minimum_candidates` can answer a request (`candidate_requirements`), nobody is chosen.
    """

    absent: ClassVar[Mapping[str, str]] = {
        "automix": "automix is not built; use confidence (a cascade)",
        "remom": "remom is not built; use confidence",
        "fusion": "fusion is not built; use confidence",
        "workflows": "workflows are not built",
        "ratings": "ratings is not built",
        "prompt": "prompt selection is not built; use decision",
        "quality": "cascades of typed answers are not built",
        "stages": "cascades of typed answers are not built",
        "budget": "cascades of typed answers are not built",
    }

    type: Annotated[Literal[ALGORITHM_TYPES], BeforeValidator(_lower)]  # type: ignore[valid-type]
    minimum_candidates: int | None = Field(default=None, ge=1)
    confidence: ConfidenceAlgorithm | None = None
    router_dc: RouterDCSelection | None = None
    hybrid: HybridSelection | None = None
    latency_aware: LatencyAwareAlgorithm | None = None
    multi_factor: MultiFactorSelection | None = None
    decision: DecisionSelection | None = None
    on_error: Literal["skip", "fail"] = "skip"
