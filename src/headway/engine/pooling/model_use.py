"""What a model is loaded for: to generate, to make vectors, or to classify. `--runner` and `--convert` against the checkpoint."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch

from headway.artifacts.card import ModelCard
from headway.engine.config import EngineConfig
from headway.engine.pooling.class_head import is_classifier, read_class_head
from headway.engine.pooling.pooler import Pooler
from headway.engine.pooling.pooler_config import read_pooler_config
from headway.errors import ConfigError
from headway.models.causal_lm import CausalLM
from headway.models.registry import ARCHITECTURES

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelUse:
    """`has_lm_head`: the checkpoint is loaded with its output matrix. `classifies`: its classification head is read."""

    generates: bool
    has_lm_head: bool
    classifies: bool = False


def model_use(config: EngineConfig, card: ModelCard) -> ModelUse:
    """Raises ConfigError (`runner_conflict`, `convert_conflict`) for flags that the checkpoint cannot follow."""
    if is_classifier(card):
        _refuse_generation(config, card, "a classification head instead of an output matrix")
        return ModelUse(False, False, config.convert != "embed")
    if config.convert == "classify":
        raise ConfigError(
            f"--convert classify needs a checkpoint with a classification head (score.weight), and {card.architecture} has none",
            reason="convert_conflict", param="convert", fix="Use a model whose architecture ends in ForSequenceClassification.",
        )  # fmt: skip
    if card.architecture.endswith("Model") and card.architecture.removesuffix("Model") + "ForCausalLM" in ARCHITECTURES:
        _refuse_generation(config, card, "no output matrix")
        return ModelUse(False, False)
    if config.runner != "pooling" and config.convert == "embed":
        raise ConfigError("--convert embed goes with --runner pooling; without it a model that generates makes vectors as well", reason="convert_conflict",
                          param="convert", fix="Add --runner pooling, or leave --convert out.")  # fmt: skip
    return ModelUse(config.runner != "pooling", True)


def _refuse_generation(config: EngineConfig, card: ModelCard, what: str) -> None:
    if config.runner == "generate":
        raise ConfigError(f"--runner generate needs a language model, and {card.architecture} has {what}", reason="runner_conflict", param="runner",
                          fix="Leave the flag out.")  # fmt: skip


class NoHead:
    """Stands for the output matrix of a model that has none, where no request asks for logits."""

    def __init__(self, vocab_size: int):
        self._vocab_size = vocab_size

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(hidden), self._vocab_size)


def make_pooler(config: EngineConfig, card: ModelCard, model: CausalLM) -> Pooler:
    """For a model whose weights are loaded. Raises ArtifactError for a classification head that is not whole."""
    use = model_use(config, card)
    if not use.has_lm_head:
        model.head = NoHead(model.config.vocab_size)
    size = hidden_size(model.config, card)
    head = read_class_head(card, size) if use.classifies else None
    pooler = Pooler(size, read_pooler_config(config.pooler_config), head, use.generates, is_trained=not use.generates and head is None)
    _log.info("Supported tasks: %s", list(pooler.tasks))
    return pooler


def hidden_size(config: object, card: ModelCard) -> int:
    """That of the model's own config, else what config.json says under one of its names."""
    own = getattr(config, "hidden_size", None)
    texts = (card.config, card.config.get("text_config") or {})
    stated = (text.get(name) for text in texts for name in ("hidden_size", "n_embd", "d_model"))
    return int(own or next((size for size in stated if isinstance(size, int)), 0))
