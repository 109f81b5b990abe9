"""Every metric family of the router, as one table. `registry` keeps them, the documentation is printed from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

REQUEST_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
STAGE_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
ANSWER_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


@dataclass(frozen=True, slots=True)
class Family:
    """`name` as exposed, without `_total`, which the text format adds to counters. Label values are always bounded: names from the
    configuration or words from a fixed list, never something that a client sends."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


FAMILIES: tuple[Family, ...] = (
    # requests
    Family("llm_model_requests", "counter", "Requests by the model that was selected.", ("model",)),
    Family("llm_request_errors", "counter", "Requests that ended in an error, by model and reason.", ("model", "reason")),
    Family("llm_request_outcomes", "counter", "Requests by how their answer came about.", ("path",)),
    Family("llm_request_duration_seconds", "histogram", "From the request's head to the end of its answer.", ("path",), ANSWER_SECONDS),
    Family("llm_recipe_selections", "counter", "Routed requests by recipe.", ("recipe",)),
    Family("llm_routing_stage_duration_seconds", "histogram", "Time of one stage of routing.", ("stage",), STAGE_SECONDS),
    # decisions
    Family("llm_decision_match", "counter", "Routed requests by the decision that won.", ("recipe", "decision")),
)
