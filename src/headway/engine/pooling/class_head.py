"""ClassHead: the linear layer of a checkpoint that was trained to classify, and the names of its classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import torch

from headway.artifacts.card import ModelCard
from headway.errors import ArtifactError
from headway.quantization.logical_card import logical_card
from headway.quantization.weight_reader import WeightReader

WEIGHT: Final = "score.weight"  # as transformers names it, next to the backbone
SUFFIX: Final = "ForSequenceClassification"
Activation = Literal["softmax", "sigmoid", "identity"]
_ACTIVATIONS: Final[dict[Any, Activation]] = {
    "regression": "identity", "single_label_classification": "softmax", "multi_label_classification": "sigmoid",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClassHead:
    """`weight` float32 [classes, hidden]. `activation`: `softmax` for classes that exclude each other, `sigmoid` for those that are
    judged one by one, `identity` for values that are no probabilities."""

    weight: torch.Tensor
    labels: tuple[str, ...]
    activation: Activation

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[hidden] -> float32 [classes]."""
        return self.weight @ hidden.float()

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        if self.activation == "identity":
            return logits
        return torch.sigmoid(logits) if self.activation == "sigmoid" else torch.softmax(logits, -1)


def is_classifier(card: ModelCard) -> bool:
    return card.architecture.endswith(SUFFIX)


def read_class_head(card: ModelCard, hidden_size: int) -> ClassHead:
    """Raises ArtifactError for a head that is not there, or that does not fit what the configuration says."""
    card = logical_card(card)
    labels = _labels(card.config)
    stored = card.tensors.get(WEIGHT)
    if stored is None:
        raise ArtifactError(f"{card.reference} is a {card.architecture} and has no tensor {WEIGHT}", reason="missing_tensor", param=WEIGHT,
                            fix="Download the model again.")  # fmt: skip
    if stored.shape != (len(labels), hidden_size):
        raise ArtifactError(f"{WEIGHT} has the shape {list(stored.shape)}, expected {[len(labels), hidden_size]}: {len(labels)} classes of config.json",
                            reason="tensor_shape", param=WEIGHT, fix="Correct id2label in config.json.")  # fmt: skip
    with WeightReader(card) as reader:
        weight = reader.tensor(WEIGHT, torch.float32)
    known = _ACTIVATIONS.get(card.config.get("problem_type"))
    return ClassHead(weight, labels, known or ("sigmoid" if len(labels) == 1 else "softmax"))


def _labels(config: Any) -> tuple[str, ...]:
    """`id2label` in the order of its numbers, else LABEL_0, ..., as transformers names them; two classes where nothing is said."""
    named = config.get("id2label")
    if isinstance(named, dict) and named:
        try:
            return tuple(str(named[key]) for key in sorted(named, key=int))
        except ValueError:
            raise ArtifactError("id2label of config.json must map numbers to names", reason="invalid_model_config", param="id2label") from None
    count = config.get("num_labels", 2)
    return tuple(f"LABEL_{i}" for i in range(count if isinstance(count, int) and 0 < count < 1 << 20 else 2))
