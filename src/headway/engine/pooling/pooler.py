"""Pooler: how the model of one engine is read; it makes the readout of each request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.engine.pooling.class_head import ClassHead
from headway.engine.pooling.pooler_config import USUAL, PoolerConfig
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.pooling.readout import Classes, LabelLogits, LastVector, MeanVector, Readout, TokenVectors
from headway.errors import RequestError


@dataclass(frozen=True, slots=True)
class Pooler:
    """`hidden_size`: numbers in a vector. `head` only for checkpoints that classify. `generates`: the model has logits of tokens.
    `is_trained`: the checkpoint, or the operator, says that vectors are what the model is for."""

    hidden_size: int
    config: PoolerConfig = USUAL
    head: ClassHead | None = None
    generates: bool = True
    is_trained: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the classes; none for a model that does not classify."""
        return () if self.head is None else self.head.labels

    @property
    def tasks(self) -> tuple[str, ...]:
        return (*(["generate"] if self.generates else []), "embed", "token_embed", *(["classify"] if self.head is not None else []))

    def readout(self, params: PoolingParams) -> Readout:
        """Raises RequestError for what this model does not have."""
        if params.task == "label_logits":
            if not self.generates:
                raise unsuited("this model has no logits of tokens: it makes vectors or classes")
            return LabelLogits(params.token_ids)
        activation = self.config.use_activation if params.use_activation is None else params.use_activation
        if params.task == "classify":
            if self.head is None:
                raise unsuited("this model has no classification head; models whose architecture ends in ForSequenceClassification have one")
            return Classes(self.head, activation)
        if params.dimensions is not None and params.dimensions > self.hidden_size:
            raise RequestError(f"dimensions is {params.dimensions}, vectors of this model have {self.hidden_size} numbers", param="dimensions")
        dimensions = params.dimensions or self.config.dimensions
        if params.task == "token_embed":
            return TokenVectors(dimensions, activation)
        kind = LastVector if self.config.pooling == "LAST" else MeanVector
        return kind(dimensions, activation)


UNREAD: Final = Pooler(0)
"""Of an engine that nobody told what is read of it."""


def unsuited(message: str) -> RequestError:
    """For a request that this model cannot answer, whatever else is in it."""
    return RequestError(message, reason="task_unsupported", param="model", fix="Ask a model that can.")
