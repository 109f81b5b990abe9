"""Calls to models for the management address: one stage, one participant, errors as refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headway.router.deployments.calls import StageCalls, Unanswered
from headway.router.embedding.source import embedding_deployment
from headway.router.generation.generation import Generation
from headway.router.generation.names import DEFAULT_RECIPE
from headway.router.management.answer import ManagementError
from headway.router.request.deadline import Deadline
from headway.router.signals.kind import Recipe

SECONDS = 45.0
_STATUS = {"rejected": 400, "overloaded": 503, "unavailable": 503, "unknown_deployment": 503, "timeout": 504}


@contextmanager
def calls(generation: Generation, seconds: float = SECONDS) -> Iterator[StageCalls]:
    participant = generation.deployments.open(Deadline.after(seconds, visible=True)).join()
    try:
        yield participant
    finally:
        participant.leave()


def default_recipe(generation: Generation) -> Recipe:
    return generation.recipes[DEFAULT_RECIPE].recipe


def embedding_of(generation: Generation) -> str:
    """The deployment that makes vectors. Raises ManagementError 503 when none does."""
    found = embedding_deployment(default_recipe(generation))
    if found is None:
        raise switched_off("embeddings", "Bind `embedding` to a deployment, or set global.model_catalog.embeddings.semantic.endpoint.")
    return found


def unanswered(answer: Unanswered) -> ManagementError:
    """Why a model did not answer, as a refusal."""
    return ManagementError("CLASSIFICATION_ERROR", f"the model did not answer: {answer.reason}", _STATUS.get(answer.reason, 500))


def switched_off(service: str, fix: str) -> ManagementError:
    return ManagementError("SERVICE_UNAVAILABLE", f"{service} is not configured", 503, fix=fix)
