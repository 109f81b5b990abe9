"""The family `decision3`, and a model of it in memory. Text only: the vision tower is not loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import ClassVar

import torch

from headway.artifacts.tokenizer import tokenizer_at
from headway.decisions.planner import decisions_planner
from headway.decisions.reader import DecisionReader
from headway.quantization.stored_format import stored_format
from headway.runtime.decoder.wanted import HiddenAt
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.loading.manifests import Verified
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.decision3.fixture import VARIANTS, write_package
from headway.runtime.readers.decision3.package import (
    CODES,
    READOUT,
    check_counts,
    is_decision3,
    loaded_files,
    read_package,
    verify_package,
    weight_tensors,
)
from headway.runtime.readers.decision3.prompt import check_codes, prompt_tokenizer
from headway.runtime.readers.decision3.reader import READOUT as ROW_READOUT
from headway.runtime.readers.decision3.reader import CodeReader
from headway.runtime.readers.decision_limits import decision_limits
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.transformers_backbone import CAPABILITIES, load_backbone
from headway.runtime.readers.transformers_trunk import TransformersTrunk
from headway.runtime.row import ItemFailure, Outcome, Row


class Decision3Family(ModelFamily):
    """`d3-code-readout-v1` packages."""

    name: ClassVar[str] = "decision3"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)

    def detect(self, package: Package) -> bool:
        return is_decision3(package)

    def describe(self, package: Package) -> ModelSpec:
        found = read_package(package)
        counted = check_counts(found)
        licence = found.manifest.get("licence")
        return ModelSpec(
            self.surfaces, counted["text"] + counted["readout"], tuple(loaded_files(found)), found.max_tokens, ("bfloat16", "float32"),
            CAPABILITIES["qwen3_5_text"], licence.get("spdx") if isinstance(licence, dict) else licence if isinstance(licence, str) else None,
            stored_format(info for name, info in weight_tensors(found).infos.items() if name.startswith(found.text_prefix)),
        )  # fmt: skip

    def verify(self, package: Package, digests: Mapping[str, str]) -> Verified:
        return verify_package(package, digests)

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        found = read_package(package)
        tokenizer = tokenizer_at(found.folder)
        tokens = prompt_tokenizer(found.folder, tokenizer)
        check_codes(tokenizer, found.decision["codes"], found.decision["token_ids"])
        dtype = torch.bfloat16 if placement.dtype == "bfloat16" else torch.float32
        backbone = load_backbone(found.text_config, weight_tensors(found), found.text_prefix, dtype=dtype, device=placement.device,
                                 source="config.json", progress=progress)  # fmt: skip
        readout = PackageTensors(found.folder, [READOUT])
        readout.check({"weight": (CODES, int(found.text_config["hidden_size"]))})
        kept = torch.bfloat16 if found.decision.get("readout_dtype") == "bfloat16" else torch.float32
        trunk = TransformersTrunk(backbone, max_tokens=found.max_tokens, share=placement.enable_shared_context, bidirectional=found.is_bidirectional)
        reader = CodeReader(tokens, found.decision["codes"], found.max_tokens, float(found.decision.get("temperature", 1.0)))
        notes = ("text only: images and videos are refused, the vision tower is not loaded",)
        facts = ModelFacts(spec.parameters, placement.dtype, decision_limits(found.max_tokens), question_types=("choice", "noul", "score"), notes=notes)
        return CodeModel(facts, reader, trunk, readout.read(kept)["weight"].float())

    def fixture_variants(self) -> Sequence[str]:
        return VARIANTS

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_package(folder, variant, seed)


class CodeModel(LoadedModel):
    """Rows of the readout `codes`: logits of all codes from the state at the row's end. `readout` [255, hidden] float32."""

    def __init__(self, facts: ModelFacts, reader: DecisionReader, trunk: TransformersTrunk, readout: torch.Tensor):
        self.facts = facts
        self.planners = {"decisions": decisions_planner(reader, facts)}
        self._trunk = trunk
        self._readout = readout

    @torch.inference_mode()
    def forward(self, rows: Sequence[Row]) -> list[Outcome]:
        return [
            outcome if isinstance(outcome, ItemFailure) else (self._readout @ torch.from_numpy(outcome[0])).numpy()
            for outcome in self._trunk.read(rows)
        ]

    def probe_rows(self, chance: Random, length: int) -> list[Row]:
        ids = tuple(chance.randrange(self._trunk.vocab_size) for _ in range(length))
        return [Row(ids, ROW_READOUT, HiddenAt((length - 1,)))]

    @property
    def memory_bytes(self) -> int:
        return self._trunk.nbytes + self._readout.nbytes
