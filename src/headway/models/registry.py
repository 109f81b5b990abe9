"""Architecture name -> declaration."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from headway.errors import ArtifactError
from headway.models.architecture import Architecture
from headway.models.architectures.falcon import FALCON
from headway.models.architectures.gemma2 import GEMMA2
from headway.models.architectures.gemma3 import GEMMA3
from headway.models.architectures.gpt2 import GPT2
from headway.models.architectures.gpt_neox import GPT_NEOX
from headway.models.architectures.granite import GRANITE
from headway.models.architectures.llama import LLAMA
from headway.models.architectures.mistral import MISTRAL
from headway.models.architectures.mixtral import MIXTRAL
from headway.models.architectures.olmo2 import OLMO2
from headway.models.architectures.phi3 import PHI3
from headway.models.architectures.qwen2 import QWEN2
from headway.models.architectures.qwen3 import QWEN3
from headway.models.architectures.qwen3_moe import QWEN3_MOE
from headway.models.architectures.stablelm import STABLELM
from headway.models.architectures.starcoder2 import STARCODER2

ARCHITECTURES: Final[Mapping[str, Architecture]] = {
    known.name: known
    for known in (
        LLAMA, MISTRAL, MIXTRAL, QWEN2, QWEN3, QWEN3_MOE, GEMMA2, GEMMA3, PHI3, GRANITE, OLMO2, STARCODER2, STABLELM, GPT_NEOX,
        GPT2, FALCON,
    )
}  # fmt: skip


def architecture(name: str) -> Architecture:
    """Raises ArtifactError (`unsupported_architecture`) with the known names and the nearest."""
    known = ARCHITECTURES.get(name)
    if known is None:
        near = difflib.get_close_matches(name, ARCHITECTURES, n=1)
        raise ArtifactError(
            f"architecture {name!r:.80} has no native implementation; there are {', '.join(ARCHITECTURES)}"
            + (f"; the nearest is {near[0]}" if near else ""),
            reason="unsupported_architecture", param="architectures", fix="Choose a model of one of them, or leave out --model-impl vllm.",
        )  # fmt: skip
    return known
