"""The family `decision2`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.quantization_claim import claim_of_config
from headway.artifacts.tokenizer import tokenizer_at
from headway.errors import PackageError
from headway.quantization.stored_format import stored_format
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.loading.manifests import Verified
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.base_format import check_base
from headway.runtime.readers.candidate_head import CandidateHead, head_shapes
from headway.runtime.readers.decision2.adapter import base_folder, read_low_rank
from headway.runtime.readers.decision2.fixture import VARIANTS, write_package
from headway.runtime.readers.decision2.package import (
    HEAD,
    MANIFEST,
    TYPES,
    Decision2Package,
    backbone_config,
    backbone_files,
    bias_report,
    calibration_report,
    check_backbone,
    identity_files,
    is_decision2,
    read_package,
    score_offsets,
    stored_tensors,
    temperatures,
    verify_package,
)
from headway.runtime.readers.decision_limits import decision_limits
from headway.runtime.readers.endpoints.model import EndpointModel
from headway.runtime.readers.endpoints.reader import EndpointReader, EndpointSettings
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.transformers_backbone import CAPABILITIES, load_backbone
from headway.runtime.readers.transformers_trunk import TransformersTrunk
from headway.runtime.readers.unpublished import not_of_the_format

NOUL_SIDES = {"false": "No", "true": "Yes"}


class Decision2Family(ModelFamily):
    """Option `base_path`: the folder of an adapter's base model."""

    name: ClassVar[str] = "decision2"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)
    option_names: ClassVar[frozenset[str]] = frozenset({"base_path"})

    def detect(self, package: Package) -> bool:
        return is_decision2(package)

    def describe(self, package: Package) -> ModelSpec:
        found = read_package(package)
        reports = [found.manifest[what]["file"] for what, report in (("calibration", calibration_report(found)), ("score_bias", bias_report(found))) if report]
        files = [MANIFEST, "config.json", *identity_files(found.folder), *reports]
        tensors = stored_tensors(found)
        counted = tensors.parameters
        stated = found.manifest.get("parameters")
        loaded = stated.get("loaded") if isinstance(stated, dict) else None
        if loaded is not None and not found.adapter and loaded != counted:
            raise not_of_the_format(MANIFEST, f"parameters.loaded {counted}, as the weight files say", loaded)
        licence = found.manifest.get("licence")
        return ModelSpec(
            self.surfaces, loaded if found.adapter and isinstance(loaded, int) else counted, tuple(dict.fromkeys(files)), found.max_tokens,
            ("float32", "bfloat16"), CAPABILITIES[found.backbone_kind], licence.get("spdx") if isinstance(licence, dict) else None,
            stored_format(tensors.infos.values()),
        )  # fmt: skip

    def verify(self, package: Package, digests: Mapping[str, str]) -> Verified:
        return verify_package(package, digests)

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        found = read_package(package)
        dtype = torch.bfloat16 if placement.dtype == "bfloat16" else torch.float32
        backbone, hidden = _backbone(found, dtype, placement, progress)
        tensors = stored_tensors(found).part([HEAD])
        tensors.check(head_shapes(hidden, found.config["head_dim"]))
        settings = EndpointSettings(found.max_tokens, NOUL_SIDES, temperatures(found), score_offsets(found))
        reader = EndpointReader(tokenizer_at(found.folder), settings)
        facts = ModelFacts(spec.parameters, placement.dtype, decision_limits(found.max_tokens), question_types=TYPES)
        trunk = TransformersTrunk(backbone, max_tokens=found.max_tokens, share=placement.enable_shared_context)
        return EndpointModel(facts, reader, trunk, CandidateHead(tensors.read(torch.float32)))

    def fixture_variants(self) -> Sequence[str]:
        return VARIANTS

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_package(folder, variant, seed)


def _backbone(found: Decision2Package, dtype: torch.dtype, placement: Placement, progress: Callable[[int, int], None]) -> tuple[Any, int]:
    if not found.adapter:
        config = backbone_config(found)
        tensors, prefix, low_rank = stored_tensors(found).part(backbone_files(found)), "", None
    else:
        base = base_folder(found, placement.options.get("base_path"))
        whole = read_json_object(base / "config.json")
        config = check_backbone(whole, found.backbone_kind, f"{base}/config.json")
        names = sorted(path.name for path in base.glob("*.safetensors"))
        if not names:
            raise PackageError(f"{base} has no .safetensors file", reason="no_weights", param=str(base), fix="Name the folder of the whole base model.")
        tensors = PackageTensors(base, names, claim_of_config(whole, f"{base}/config.json"))
        check_base(tensors, placement.device)
        prefix, low_rank = "model.language_model." if "text_config" in whole else "", read_low_rank(found)
    model = load_backbone(config, tensors, prefix, dtype=dtype, device=placement.device, source="backbone/config.json", low_rank=low_rank, progress=progress)
    return model, int(config["hidden_size"])
