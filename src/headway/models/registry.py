"""Architecture name -> declaration."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from headway.errors import ArtifactError
from headway.models.architecture import Architecture
from headway.models.gemma3 import GEMMA3
from headway.models.llama import LLAMA
from headway.models.mistral import MISTRAL
from headway.models.qwen2 import QWEN2
from headway.models.qwen3 import QWEN3

ARCHITECTURES: Final[Mapping[str, Architecture]] = {
    known.name: known for known in (LLAMA, MISTRAL, QWEN2, QWEN3, GEMMA3)
}


def architecture(name: str) -> Architecture:
    """Raises ArtifactError (`unsupported_architecture`) with the known names and the nearest."""
    known = ARCHITECTURES.get(name)
    if known is None:
        near = difflib.get_close_matches(name, ARCHITECTURES, n=1)
        raise ArtifactError(
            f"architecture {name!r:.80} is not supported; supported: {', '.join(ARCHITECTURES)}"
            + (f"; the nearest is {near[0]}" if near else ""),
            reason="unsupported_architecture", param="architectures", fix="Choose a model of a supported architecture.",
        )  # fmt: skip
    return known
