"""EncoderQuestionModel: three stacks of layers over one embedding, each with a marker head of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

import numpy as np
import torch

from headway.artifacts.card import TensorInfo
from headway.decisions.planner import decisions_planner
from headway.errors import PackageError
from headway.kernels.packed_batch import pack
from headway.models.encoders.load import load_planned_encoder
from headway.models.encoders.native_encoder import NativeEncoder
from headway.models.encoders.plan import plan_encoder
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.model_facts import ModelFacts
from headway.runtime.readers.decision1.encoder_reader import EncoderQuestionReader
from headway.runtime.readers.decision1.package import TYPES, Decision1Package
from headway.runtime.readers.laya.head import Marked, MarkerHead
from headway.runtime.readers.laya.head import head_shapes as marker_shapes
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.part_card import card_of_part
from headway.runtime.row import ItemFailure, Outcome, Row

# Nouls read the encoder itself; choices and scores have layers of their own.
_BRANCHES: Final = {"choice": "choice_encoder", "score": "score_encoder"}
_PROBE_MARKS: Final = 3


class EncoderQuestionModel(LoadedModel):
    """Rows of a readout run through the stack of that type, all of them packed into one pass."""

    def __init__(self, facts: ModelFacts, reader: EncoderQuestionReader, encoders: Mapping[str, NativeEncoder], heads: Mapping[str, MarkerHead],
                 nbytes: int):  # fmt: skip
        self.facts = facts
        self.planners = {"decisions": decisions_planner(reader, facts)}
        self._encoders = encoders
        self._heads = heads
        self._nbytes = nbytes

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        for number, kind in enumerate(TYPES):
            chosen = [index for index, row in enumerate(rows) if row.readout == kind]
            if not chosen:
                continue
            batch = pack([rows[index].token_ids for index in chosen])
            hidden = self._encoders[kind].encode(batch).last
            marked = [Marked(int(start), int(end), number, self._marks(rows[index]))
                      for index, start, end in zip(chosen, batch.starts[:-1], batch.starts[1:], strict=True)]  # fmt: skip
            for index, logits in zip(chosen, self._heads[kind].read(hidden, marked), strict=True):
                finite = np.isfinite(logits).all()
                outcomes[index] = logits if finite else ItemFailure("invalid_model_output", "the model's numbers are not finite")
        return [outcomes[index] for index in range(len(rows))]

    def _marks(self, row: Row) -> tuple[int, ...]:
        assert isinstance(row.detail, tuple)
        return row.detail

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        size = self._encoders["noul"].config.vocab_size
        length = max(length, _PROBE_MARKS)
        marks = tuple(length * part // _PROBE_MARKS for part in range(_PROBE_MARKS))
        return [Row(tuple(chance.randrange(size) for _ in range(length)), kind, marks) for kind in TYPES]

    @property
    def memory_bytes(self) -> int:
        return self._nbytes


def load_encoders(found: Decision1Package, stored: PackageTensors, dtype: torch.dtype, progress: Callable[[int, int], None]) -> dict[str, NativeEncoder]:
    """The stack of each question type; the table of words is in memory once.

    Raises PackageError for what is no encoder that runs here, and for missing or odd tensors.
    """
    shared = stored.part(found.backbone_weights)
    total = 3 * sum(info.nbytes for info in shared.infos.values())
    loaded: dict[str, NativeEncoder] = {}
    for number, kind in enumerate(("noul", "choice", "score")):
        tensors = shared.infos if kind == "noul" else _branch(stored.part([found.decision_weights[_BRANCHES[kind]]]), shared.infos, kind)
        card = card_of_part(f"{found.folder.name} ({kind})", found.backbone_config, tensors, [info.file for info in tensors.values()])
        encoder = load_planned_encoder(plan_encoder(card, ""), dtype, progress=_moved(progress, total * number // 3, total))
        if not isinstance(encoder, NativeEncoder):
            raise PackageError(f"{found.folder}: the encoder is a {found.backbone_config.get('model_type')!r:.60}, expected 'modernbert'",
                                reason="unsupported_architecture", param="backbone.config")  # fmt: skip
        if loaded:
            encoder.embedding = loaded["noul"].embedding
        loaded[kind] = encoder
    return loaded


def _moved(progress: Callable[[int, int], None], start: int, total: int) -> Callable[[int, int], None]:
    """Progress of a part that begins at `start`."""
    return lambda done, _: progress(start + done, total)


def _branch(own: PackageTensors, shared: Mapping[str, TensorInfo], kind: str) -> dict[str, TensorInfo]:
    """The encoder's tensors with the layers and the last norm of a branch in their place."""
    tensors = {name: info for name, info in shared.items() if name.startswith("embeddings.")}
    for name, info in own.infos.items():
        renamed = name.replace(f"{kind}_blocks.", "layers.", 1).replace(f"{kind}_final_norm.", "final_norm.", 1)
        tensors[renamed] = replace(info, name=renamed)
    return tensors


def load_heads(found: Decision1Package, stored: PackageTensors, hidden: int) -> dict[str, MarkerHead]:
    """Raises PackageError: `missing_tensor`, `tensor_shape`, `unexpected_tensor`."""
    layers, heads = found.config["head"]["head_layers"], found.config["head"]["head_heads"]
    one = {name: shape for name, shape in marker_shapes(hidden, layers, None).items() if name != "type_emb.weight"}
    tensors = stored.part([found.decision_weights["decision_heads"]])
    tensors.check({"type_embedding.weight": (len(TYPES), hidden), **{_stored(name, kind): shape for kind in TYPES for name, shape in one.items()}})
    values = tensors.read(torch.float32)
    kinds = values["type_embedding.weight"]
    return {
        kind: MarkerHead({"type_emb.weight": kinds, **{name: values[_stored(name, kind)] for name in one}}, layers, heads) for kind in TYPES
    }


def _stored(name: str, kind: str) -> str:
    """A tensor of one head, as the package names it."""
    return name.replace("head.layers.", f"heads.{kind}.", 1) if name.startswith("head.") else name.replace("scorer.", f"scorers.{kind}.", 1)
