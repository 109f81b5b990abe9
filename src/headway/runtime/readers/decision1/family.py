"""The family `decision1`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import torch

from headway.artifacts.tokenizer import Tokenizer, tokenizer_at
from headway.quantization.stored_format import stored_format
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.loading.manifests import Verified
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.candidate_head import CandidateHead, head_shapes
from headway.runtime.readers.decision1.encoder_model import EncoderQuestionModel, load_encoders, load_heads
from headway.runtime.readers.decision1.encoder_reader import EncoderQuestionReader
from headway.runtime.readers.decision1.fixture import VARIANTS, write_package
from headway.runtime.readers.decision1.package import (
    QWEN,
    TYPES,
    VELA,
    Decision1Package,
    is_decision1,
    read_package,
    verify_package,
)
from headway.runtime.readers.decision1.presets import read_presets
from headway.runtime.readers.decision_limits import decision_limits
from headway.runtime.readers.endpoints.model import EndpointModel
from headway.runtime.readers.endpoints.reader import EndpointReader, EndpointSettings
from headway.runtime.readers.transformers_backbone import CAPABILITIES, load_backbone
from headway.runtime.readers.transformers_trunk import TransformersTrunk
from headway.runtime.readers.unpublished import not_of_the_format

_SIDES: Final = {"false": "The answer to the question is no.", "true": "The answer to the question is yes."}
_NULL_AS_KEY: Final = frozenset({"Decision-1.0-Nox-4B"})  # trained with keys in the place of missing descriptions


class Decision1Family(ModelFamily):
    """`qwen3.5-decision` and `vela-encoder` packages."""

    name: ClassVar[str] = "decision1"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)

    def detect(self, package: Package) -> bool:
        return is_decision1(package)

    def describe(self, package: Package) -> ModelSpec:
        found = read_package(package)
        read_presets(found)
        tensors = found.tensors()
        counted = tensors.parameters
        stated = found.config.get("parameters")
        if found.runtime == VELA and stated is not None and stated != counted:
            raise not_of_the_format("config.json", f"parameters {counted}, as the weight files say", stated)
        capabilities = CAPABILITIES["qwen3_5_text"] if found.runtime == QWEN else ()
        return ModelSpec(
            self.surfaces, counted, found.loaded_files, found.max_tokens, ("float32", "bfloat16"), capabilities,
            stored=stored_format(tensors.infos.values()),
        )  # fmt: skip

    def verify(self, package: Package, digests: Mapping[str, str]) -> Verified:
        return verify_package(package, digests)

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        found = read_package(package)
        presets = read_presets(found)
        facts = ModelFacts(spec.parameters, placement.dtype, decision_limits(found.max_tokens), question_types=TYPES, presets=tuple(sorted(presets)))
        tokenizer = tokenizer_at((found.folder / found.tokenizer["json"]).parent)
        dtype = torch.bfloat16 if placement.dtype == "bfloat16" else torch.float32
        if found.runtime == VELA:
            return _load_vela(found, facts, EncoderQuestionReader(tokenizer, found.max_tokens, presets), dtype, progress)
        return _load_qwen(found, facts, tokenizer, presets, placement, dtype, progress)

    def fixture_variants(self) -> Sequence[str]:
        return tuple(VARIANTS)

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_package(folder, variant, seed)


def _load_vela(found: Decision1Package, facts: ModelFacts, reader: EncoderQuestionReader, dtype: torch.dtype,
               progress: Callable[[int, int], None]) -> LoadedModel:  # fmt: skip
    tensors = found.tensors()
    encoders = load_encoders(found, tensors, dtype, progress)
    heads = load_heads(found, tensors, encoders["noul"].hidden_size)
    return EncoderQuestionModel(facts, reader, encoders, heads, tensors.parameters * dtype.itemsize)


def _load_qwen(found: Decision1Package, facts: ModelFacts, tokenizer: Tokenizer, presets: Mapping[str, Any], placement: Placement,
               dtype: torch.dtype, progress: Callable[[int, int], None]) -> LoadedModel:  # fmt: skip
    config = found.backbone_config.get("text_config", found.backbone_config)
    if config.get("model_type") != "qwen3_5_text":
        raise not_of_the_format("backbone.config", "model_type qwen3_5_text", config.get("model_type"))
    tensors = found.tensors()
    backbone = load_backbone(config, tensors.part(found.backbone_weights), "", dtype=dtype, device=placement.device,
                             source="backbone.config", progress=progress)  # fmt: skip
    head = tensors.part([found.decision_weights["decision_head"]])
    head.check(head_shapes(int(config["hidden_size"]), found.config["head_dim"]))
    settings = EndpointSettings(found.max_tokens, _SIDES, found.temperatures, null_as_key=found.model_name in _NULL_AS_KEY)
    trunk = TransformersTrunk(backbone, max_tokens=found.max_tokens, share=placement.enable_shared_context)
    return EndpointModel(facts, EndpointReader(tokenizer, settings, presets), trunk, CandidateHead(head.read(torch.float32)))
