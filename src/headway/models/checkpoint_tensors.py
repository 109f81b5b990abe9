"""Whether the tensors of a checkpoint are those that a model needs: none missing, none of another shape, none left over.

A tensor left over is refused, as vLLM and llama.cpp do: a bias, norm or layer that the configuration does not mention
and that is left out makes wrong text without any error. What no text decoder needs is in a table and goes by.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Final

from headway.artifacts.card import ModelCard
from headway.errors import ArtifactError

_log = logging.getLogger(__name__)
_SHOWN: Final = 8
_FIX: Final = "Download the model again, or check that config.json belongs to these weights."

# Tensors that may be left over, and why.
IGNORABLE: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"(^|\.)rotary_emb\.inv_freq$|^rope_(freqs|factors_\w+)\.weight$"), "rotary tables, which are computed"),
    (re.compile(r"\.(attn|attention)\.(bias|masked_bias)$"), "causal masks that old exports store"),
    (re.compile(r"(^|\.)position_ids$"), "position numbers that old exports store"),
    (re.compile(r"(^|\.)mtp(\.|_)|\.nextn\."), "layers that guess several tokens ahead"),
    (re.compile(r"\.(k|v|kv|q|prob)_scale$"), "scales of a quantized KV cache"),
    (re.compile(r"^(score|classifier|v_head|value_head)\."), "heads of other tasks"),
    (re.compile(r"(^|\.)(vision_tower|vision_model|visual|multi_modal_projector|mm_projector|audio_tower|embed_vision|embed_audio)\."),
     "parts for images and sound"),
)  # fmt: skip


def check_tensors(card: ModelCard, wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Compare the checkpoint with the shapes that the configuration asks for, before anything is allocated.

    Raises ArtifactError: `missing_tensor`, `tensor_shape`, `unexpected_tensor`.
    """
    refuse_missing(card, [name for name in wanted if name not in card.tensors])
    refuse_shapes(
        card, [(name, card.tensors[name].shape, shape) for name, shape in wanted.items() if card.tensors[name].shape != shape]
    )
    refuse_unexpected(card, [name for name in card.tensors if name not in wanted])


def refuse_missing(card: ModelCard, names: list[str]) -> None:
    """Raises ArtifactError (`missing_tensor`) unless `names` is empty."""
    if names:
        raise ArtifactError(
            f"{card.path} lacks {len(names)} of the tensors that {card.architecture} needs as its configuration describes it:"
            f" {some(names)} (it has {len(card.tensors)} tensors in {len(card.files)} file(s))",
            reason="missing_tensor", param=names[0], fix=_FIX,
        )  # fmt: skip


def refuse_shapes(card: ModelCard, wrong: list[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> None:
    """`wrong`: name, shape found, shape expected. Raises ArtifactError (`tensor_shape`) unless it is empty."""
    if wrong:
        name, found, expected = wrong[0]
        more = f"; {len(wrong)} tensors in all: {some([name for name, _, _ in wrong])}" if len(wrong) > 1 else ""
        place = card.tensors[name].file if name in card.tensors else card.path
        raise ArtifactError(
            f"{place}: tensor {name} has shape {list(found)}, the configuration says {list(expected)}{more}",
            reason="tensor_shape", param=name, fix="Check that config.json belongs to these weights.",
        )  # fmt: skip


def refuse_unexpected(card: ModelCard, names: Iterable[str]) -> None:
    """Raises ArtifactError (`unexpected_tensor`) unless every one of `names` is ignorable; those are logged."""
    unknown: list[str] = []
    ignored: dict[str, int] = {}
    for name in names:
        why = next((why for pattern, why in IGNORABLE if pattern.search(name)), None)
        if why is None:
            unknown.append(name)
        else:
            ignored[why] = ignored.get(why, 0) + 1
    for why, count in ignored.items():
        _log.info("%d tensors of %s are not used: %s", count, card.reference, why)
    if unknown:
        raise ArtifactError(
            f"{card.path} has {len(unknown)} tensors for which {card.architecture} has no place as its configuration describes it:"
            f" {some(unknown)}",
            reason="unexpected_tensor", param=unknown[0],
            fix="Check that config.json belongs to these weights: a bias, norm or layer that is left out would make wrong text."
            " If the tensors really do not matter, save the checkpoint without them.",
        )  # fmt: skip


def some(names: list[str]) -> str:
    """The first names, cut to what a message can bear."""
    return ", ".join(name[:120] for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
