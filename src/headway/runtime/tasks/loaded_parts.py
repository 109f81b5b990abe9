"""What all task models have: an encoder in memory, and texts for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.artifacts.tokenizer import load_tokenizer
from headway.models.encoders.encoder import Encoder
from headway.models.encoders.load import load_planned_encoder
from headway.models.held_bytes import held_bytes
from headway.runtime.decoder.loading import DTYPES
from headway.runtime.family import Placement
from headway.runtime.loaded_model import Planner, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.tasks.backbones import tells_texts_apart
from headway.runtime.tasks.lower_case import apply_lower_case
from headway.runtime.tasks.readouts import Readout
from headway.runtime.tasks.sequence_text import SequenceText
from headway.runtime.tasks.task_model import TaskModel
from headway.runtime.tasks.task_package import TaskPackage

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LoadedParts:
    """`options` are those of the models file; `dtype` is that of the encoder, heads are float32."""

    found: TaskPackage
    encoder: Encoder
    text: SequenceText
    options: Mapping[str, Any]
    dtype: str

    def model(
        self, readouts: Mapping[str, Readout], facts: ModelFacts, planners: Mapping[Surface, Planner],
        exits: Sequence[tuple[str, int | None]],
    ) -> TaskModel:  # fmt: skip
        """`exits`: each readout with each layer that it is asked at."""
        plan = self.found.plan
        heads = self.found.parameters - plan.parameters
        encoder = held_bytes(self.encoder) if self.dtype == "int8" else plan.parameters * self.encoder.dtype.itemsize
        return TaskModel(self.encoder, readouts, facts, planners, vocab_size=int(plan.card.config["vocab_size"]),
                         memory_bytes=encoder + 4 * heads, exits=exits)  # fmt: skip


def load_parts(found: TaskPackage, placement: Placement, progress: Progress) -> LoadedParts:
    """Raises what `load_planned_encoder` and `load_tokenizer` raise."""
    tokenizer = load_tokenizer(found.plan.card)
    if found.task == "embedding":
        apply_lower_case(tokenizer, found.package)
    text = SequenceText(tokenizer, found.limit, tells_texts_apart(found.config))
    encoder = load_planned_encoder(found.plan, DTYPES[placement.dtype], int8=placement.dtype == "int8", progress=progress)
    return LoadedParts(found, encoder, text, placement.options, placement.dtype)
