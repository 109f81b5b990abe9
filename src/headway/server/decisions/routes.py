"""The routes of decisions. Their refusals have forms of their own, so the API description shows them as objects."""

from __future__ import annotations

from typing import Any, Final

from headway.server.decisions.endpoints import create_decisions, create_systemone, create_systemone_batch
from headway.server.decisions.models import systemone_models
from headway.server.route import Route
from headway.wire.decision_errors import TOO_LONG_STATUS, VALIDATION_STATUS
from headway.wire.decision_schemas import DecisionsBody, SystemOneBatchBody, SystemOneBody
from headway.wire.models import DecisionModelList

_ANSWER: Final = dict[str, Any]
_OWN: Final = (VALIDATION_STATUS, TOO_LONG_STATUS, 504)

DECISION_ROUTES: Final = (
    Route("/v1/systemone/models", ("GET",), systemone_models, answer=DecisionModelList),
    Route("/v1/systemone", ("POST",), create_systemone, SystemOneBody, _ANSWER, counted=True, error=_ANSWER, statuses=_OWN),
    Route("/v1/systemone/batch", ("POST",), create_systemone_batch, SystemOneBatchBody, _ANSWER, counted=True, error=_ANSWER, statuses=_OWN),
    Route("/v1/decisions", ("POST",), create_decisions, DecisionsBody, _ANSWER, counted=True, error=_ANSWER, statuses=_OWN),
)
