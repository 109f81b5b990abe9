"""Which method quantizes weights while they are loaded, from --quantization and what the checkpoint says of itself."""

from __future__ import annotations

import logging

from headway.artifacts.card import ModelCard
from headway.artifacts.quantization_claim import check_claim, choose_quantization
from headway.engine.config import EngineConfig
from headway.errors import ConfigError

_log = logging.getLogger(__name__)


def rounding_choice(config: EngineConfig, card: ModelCard) -> str | None:
    """The method that weights are quantized with while they are loaded, if any. The checkpoint decides: a flag that says the same is
    fine, one that says otherwise is an error, as is a file that says what its tensors are not."""
    choice = choose_quantization(card, config.quantization)
    check_claim(card)
    if choice.note is not None:
        _log.info("%s", choice.note)
    if choice.online and config.load_format == "dummy":
        raise ConfigError(
            f"--quantization {config.quantization} quantizes the weights of a checkpoint, and --load-format dummy reads none",
            reason="quantization_conflict", param="quantization", fix="Leave one of the two flags out.",
        )  # fmt: skip
    return choice.method if choice.online else None
