"""MultimodalModel: one readout for each modality, one planner for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import torch

from headway.runtime.loaded_model import LoadedModel, Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.multimodal.readouts import MediaReadout
from headway.runtime.row import Outcome, Row
from headway.runtime.tasks.embeddings import EmbeddingsPlanner, embedding_facts
from headway.runtime.tasks.limits import MAX_INPUTS
from headway.runtime.tasks.media import MediaReader, most_media
from headway.runtime.tasks.sentence_layout import SentenceLayout
from headway.runtime.tasks.sequence_text import SequenceText


class MultimodalModel(LoadedModel):
    """`readouts` by the name that rows give. Outcomes: float32 [width], not normalized."""

    def __init__(self, facts: ModelFacts, planner: EmbeddingsPlanner, readouts: Mapping[str, MediaReadout], memory_bytes: int):
        self.facts = facts
        self.planners: Mapping[Surface, Planner] = {"embeddings": planner}
        self._readouts = readouts
        self._memory_bytes = memory_bytes

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        outcomes: list[Outcome] = [None] * len(rows)
        for name, readout in self._readouts.items():
            numbers = [number for number, row in enumerate(rows) if row.readout == name]
            for number, vector in zip(numbers, readout.read([rows[n] for n in numbers]), strict=True):
                outcomes[number] = vector
        return outcomes

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        return [readout.probe_row(chance, length) for readout in self._readouts.values()]

    @property
    def memory_bytes(self) -> int:
        return self._memory_bytes


def multimodal_facts(
    parameters: int, dtype: str, layout: SentenceLayout, text: SequenceText, media: Mapping[str, MediaReader]
) -> ModelFacts:
    modalities = ("text", *media)
    limits = {"max_input_tokens": text.limit, "max_inputs": MAX_INPUTS}
    for modality, reader in media.items():
        limits |= {f"max_{modality}_inputs": min(MAX_INPUTS, most_media(reader)), **reader.limits.card}
    return ModelFacts(parameters, dtype, limits, embedding=embedding_facts(layout, modalities), modalities=modalities)
