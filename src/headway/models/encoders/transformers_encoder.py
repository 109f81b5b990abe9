"""An encoder that the model class of transformers runs, behind the same interface."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import torch

from headway.errors import NotBuiltError
from headway.kernels.packed_batch import PackedBatch
from headway.kernels.row_groups import GroupedRows, RowGroup, group_rows
from headway.models.encoders.encoder import Encoded, Encoder


class TransformersEncoder(Encoder):
    """Rows of one length go through the model together; no row is ever padded, so neither masks nor padding can leak from one
    row to another. Only the last layer can be read: where a model's final norm belongs is known to its own code alone."""

    def __init__(self, model: Any, dtype: torch.dtype, *, hidden_size: int, num_layers: int, max_positions: int):
        self.hidden_size, self.num_layers, self.max_positions = hidden_size, num_layers, max_positions
        self.dtype = dtype
        self._model = model
        self._typed = "token_type_ids" in inspect.signature(model.forward).parameters

    @torch.inference_mode()
    def encode(self, batch: PackedBatch, exits: Collection[int] = ()) -> Encoded:
        """Raises NotBuiltError for an exit below the last layer."""
        below = sorted(layer for layer in exits if layer != self.num_layers)
        if below:
            raise NotBuiltError(
                f"layer {below[0]} of {self.num_layers} of a model that transformers runs (the fallback): only the last can be read",
                param="layer", fix="Leave it out.",
            )  # fmt: skip
        rows = group_rows(batch)
        parts = [self._run(rows, group) for group in rows.groups]
        last = rows.restored(torch.cat(parts)) if parts else torch.empty(0, self.hidden_size, dtype=self.dtype)
        return Encoded(last, dict.fromkeys(exits, last))

    def _run(self, rows: GroupedRows, group: RowGroup) -> torch.Tensor:
        shape = (group.rows, group.length)
        inputs = {"input_ids": rows.token_ids[group.tokens].view(shape)}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        if self._typed and rows.segments is not None:
            inputs["token_type_ids"] = rows.segments[group.tokens].view(shape)
        hidden: torch.Tensor = self._model(**inputs).last_hidden_state
        return hidden.reshape(group.rows * group.length, self.hidden_size)
