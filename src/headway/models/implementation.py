"""The implementations of a model that a user can choose from."""

from __future__ import annotations

from typing import Final, Literal

Implementation = Literal["auto", "vllm", "transformers"]
IMPLEMENTATIONS: Final[tuple[Implementation, ...]] = ("auto", "vllm", "transformers")
