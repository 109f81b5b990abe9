"""The tokenizer that prompts are made with, found like any model, without weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.artifacts.inspect import inspect
from headway.artifacts.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from headway.artifacts.tokenizer import Tokenizer


def prompt_tokenizer(reference: str) -> Tokenizer:
    """The tokenizer of a model reference. Raises ArtifactError when it cannot be found."""
    return load_tokenizer(inspect(reference))
