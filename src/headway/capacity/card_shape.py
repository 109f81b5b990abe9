"""A model card (headers of weight files and a configuration) -> ModelShape, with the counts of the files."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from headway.artifacts.card import ModelCard
from headway.capacity.config_shape import config_shape
from headway.capacity.model_shape import ModelShape
from headway.capacity.weight_bytes import is_embedding, is_head

_TOWER: Final = re.compile(r"(^|\.)(vision_model|vision_tower|visual|connector|multi_modal_projector)\.")


def card_shape(card: ModelCard) -> ModelShape:
    """Parameters, tables and stored bytes as the files have them; layers, heads and cache as the configuration says. A card
    without tensors (a configuration alone) is what the configuration says.

    Raises CapacityError (`unknown_geometry`).
    """
    shape = config_shape(card.config, card.reference)
    method = None if card.quantization is None else str(card.quantization.get("quant_method"))
    shape = replace(shape, context_length=card.context_length, architecture=card.architecture or shape.architecture, quantization=method)
    if not card.tensors:
        return shape
    head = sum(tensor.elements for tensor in card.tensors.values() if is_head(tensor))
    found = sum(tensor.elements for tensor in card.tensors.values() if is_embedding(tensor))
    tables = found if found and shape.kind == "decoder" else shape.embeddings
    skipped = shape.parameters - shape.active - (shape.embeddings if shape.head or shape.kind == "encoder" else 0)
    tower = sum(tensor.elements for tensor in card.tensors.values() if _TOWER.search(tensor.name))
    if tower:
        shape = replace(shape, notes=(*shape.notes, f"{tower / 1e6:,.1f} M of the parameters read images; what images take beside them is not reckoned"))
    unread = tables if head or shape.kind == "encoder" else 0
    return replace(
        shape, parameters=card.parameters, embeddings=tables, head=head, active=max(1, card.parameters - unread - max(0, skipped)),
        stored_bytes=card.weight_bytes, stored_types=dict(card.dtype_bytes),
    )  # fmt: skip
