"""Running a model with sliding windows as one without them."""

from __future__ import annotations

from dataclasses import replace

from headway.artifacts.card import ModelCard
from headway.artifacts.context_length import text_config


def without_window(card: ModelCard) -> ModelCard:
    """The card with its context cut to the smallest window: no longer text exists, so no window ever hides a token. That
    is what vLLM's --disable-sliding-window does; attending beyond the window is nothing that the model has learned."""
    config = text_config(card.config)
    window = config.get("sliding_window")
    if type(window) is not int or window < 1 or config.get("use_sliding_window") is False:
        return card
    return replace(card, context_length=min(window, card.context_length or window))
