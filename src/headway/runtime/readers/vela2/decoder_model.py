"""BlockModel: a decoder, the candidate head and the span heads in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import torch

from headway.decisions.planner import decisions_planner
from headway.runtime.decoder.wanted import HiddenAt
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.model_facts import ModelFacts
from headway.runtime.readers.candidate_head import CandidateHead
from headway.runtime.readers.transformers_trunk import TransformersTrunk
from headway.runtime.readers.vela2.blocks import OPTIONS, SET, SPAN, SpanAt
from headway.runtime.readers.vela2.decoder_reader import BlockReader
from headway.runtime.readers.vela2.span_head import SpanHead
from headway.runtime.row import ItemFailure, Outcome, Row


class BlockModel(LoadedModel):
    """`set_bias` is added to the logits of sets. `spans`: head by name."""

    def __init__(self, facts: ModelFacts, reader: BlockReader, trunk: TransformersTrunk, head: CandidateHead, set_bias: float,
                 spans: Mapping[str, SpanHead]):  # fmt: skip
        self.facts = facts
        self.planners = {"decisions": decisions_planner(reader, facts)}
        self._trunk = trunk
        self._head = head
        self._set_bias = set_bias
        self._spans = spans

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        return [self._read(row, outcome) for row, outcome in zip(rows, self._trunk.read(rows), strict=True)]

    def _read(self, row: Row, outcome: Outcome) -> Outcome:
        if isinstance(outcome, ItemFailure):
            return outcome
        states = torch.from_numpy(outcome)
        if isinstance(row.detail, SpanAt):
            listed = sum(row.detail.labels)
            labels = torch.stack([each.mean(0) for each in torch.split(states[:listed], list(row.detail.labels))])
            words = states[listed:]
            if not len(words):
                return np.zeros((0, len(row.detail.labels)), dtype=np.float32)
            return self._spans[row.readout.removeprefix(SPAN)].logits(words, labels).numpy()
        logits = self._head.logits(states[:-1], states[-1]).numpy()
        return logits + np.float32(self._set_bias) if row.readout == SET else logits

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        ids = tuple(chance.randrange(self._trunk.vocab_size) for _ in range(max(length, 3)))
        last, third = len(ids) - 1, len(ids) // 3
        spans = [Row(ids, SPAN + name, SpanAt((0, third, last - 1, last), (1, 1))) for name in self._spans]
        return [*(Row(ids, name, HiddenAt((third, 2 * third, last))) for name in (OPTIONS, SET)), *spans]

    @property
    def memory_bytes(self) -> int:
        return self._trunk.nbytes + self._head.nbytes + sum(head.nbytes for head in self._spans.values())
