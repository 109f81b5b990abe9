"""The family `vela2`: the encoder (`vela2-unified`) and the decoders (`vela2-decoder`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch

from headway.artifacts.tokenizer import tokenizer_at
from headway.models.encoders.load import load_planned_encoder
from headway.models.encoders.plan import plan_encoder
from headway.quantization.stored_format import stored_format
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.loading.manifests import Verified
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.candidate_head import CandidateHead, head_shapes
from headway.runtime.readers.decision_limits import MAX_OPTIONS, decision_limits
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.part_card import card_of_part
from headway.runtime.readers.plain_text import plain_tokenizer
from headway.runtime.readers.transformers_backbone import CAPABILITIES, backbone_type, load_backbone
from headway.runtime.readers.transformers_trunk import TransformersTrunk
from headway.runtime.readers.unpublished import not_of_the_format
from headway.runtime.readers.vela2.budget import OPTION as SCAN_OPTION
from headway.runtime.readers.vela2.budget import default_budget
from headway.runtime.readers.vela2.calibration import BROAD, ROUTER
from headway.runtime.readers.vela2.decoder_model import BlockModel
from headway.runtime.readers.vela2.decoder_reader import BlockReader, SpanForm
from headway.runtime.readers.vela2.encoder_model import SequenceModel
from headway.runtime.readers.vela2.encoder_reader import SequenceReader
from headway.runtime.readers.vela2.fixture import VARIANTS, write_package
from headway.runtime.readers.vela2.marker_readout import MarkerReadout, readout_shapes
from headway.runtime.readers.vela2.package import (
    BROAD_HEAD,
    ENCODER,
    Vela2Package,
    is_vela2,
    read_package,
    verify_package,
)
from headway.runtime.readers.vela2.questions import read_presets
from headway.runtime.readers.vela2.reading import VelaReadings
from headway.runtime.readers.vela2.request import RequestReader
from headway.runtime.readers.vela2.sequence import MARKERS, sequence_form
from headway.runtime.readers.vela2.span_head import BROAD_PREFIX, ROUTER_PREFIX, SpanHead, span_shapes

_NOUL_OPTION = "noul_calibration"
_ISOLATE_OPTION = "isolate_questions"


class Vela2Family(ModelFamily):
    """Options: `max_scan_tokens`; `noul_calibration` (true or false; else what the package says); `isolate_questions`: a
    sequence of the encoder for each question."""

    name: ClassVar[str] = "vela2"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)
    option_names: ClassVar[frozenset[str]] = frozenset({SCAN_OPTION, _NOUL_OPTION, _ISOLATE_OPTION})

    def detect(self, package: Package) -> bool:
        return is_vela2(package)

    def describe(self, package: Package) -> ModelSpec:
        found = read_package(package)
        tensors = found.tensors()
        capabilities = () if found.member == ENCODER else CAPABILITIES[backbone_type(found.backbone_config, "backbone_config")]
        broad = PackageTensors(found.folder, [BROAD_HEAD]).parameters if found.has_broad_head else 0
        return ModelSpec(
            self.surfaces, tensors.parameters + broad, found.loaded_files, found.max_tokens, ("float32", "bfloat16"), capabilities,
            stored=stored_format(tensors.infos.values()),
        )  # fmt: skip

    def verify(self, package: Package, digests: Mapping[str, str]) -> Verified:
        return verify_package(package, digests)

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        found = read_package(package)
        dtype = torch.bfloat16 if placement.dtype == "bfloat16" else torch.float32
        budget = default_budget(found.max_tokens, placement.device, placement.options)
        nouls = bool(placement.options.get(_NOUL_OPTION, found.calibration.noul_by_default))
        readings = VelaReadings(found.calibration, calibrate_nouls=nouls, report_heads=found.has_broad_head)
        plain = plain_tokenizer(tokenizer_at(found.folder), MARKERS)
        requests = RequestReader(plain, found.calibration, budget, found.max_tokens, broad_loaded=found.has_broad_head)
        presets = read_presets(found.calibration)
        limits = {**decision_limits(found.max_tokens), "max_labels": MAX_OPTIONS, "max_scan_tokens": budget, "truncate_tokens": found.max_tokens}
        facts = ModelFacts(spec.parameters, placement.dtype, limits, question_types=("choice", "noul", "score", "set", "span"), presets=tuple(sorted(presets)))
        load = _load_encoder if found.member == ENCODER else _load_decoder
        return load(found, facts, requests, readings, placement, dtype, progress)

    def fixture_variants(self) -> Sequence[str]:
        return tuple(VARIANTS)

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_package(folder, variant, seed)


def _load_encoder(found: Vela2Package, facts: ModelFacts, requests: RequestReader, readings: VelaReadings, placement: Placement,
                  dtype: torch.dtype, progress: Callable[[int, int], None]) -> LoadedModel:  # fmt: skip
    form = sequence_form(found.config)
    tensors = found.tensors()
    card = card_of_part(found.folder.name, {"model_type": "modernbert", **found.backbone_config}, tensors.infos, [found.folder / name for name in found.weights])
    plan = plan_encoder(card, "encoder.")
    tensors.check(readout_shapes(plan.hidden_size, found.config["proj_dim"], found.config["readout"]), ignore=lambda name: name.startswith("encoder."))
    names = [name for name in tensors.infos if not name.startswith("encoder.")]
    readout = MarkerReadout(tensors.read(torch.float32, names=names), found.config["readout"])
    encoder = load_planned_encoder(plan, dtype, progress=progress)
    if max(form.bos, form.eos, *form.markers.values()) >= found.backbone_config["vocab_size"]:
        raise not_of_the_format("config.json", "markers inside the vocabulary", dict(form.markers))
    calibration = found.calibration
    temperatures = {kind: calibration.temperature(kind) for kind in ("choice", "score", "set", "span")}
    reader = SequenceReader(requests, readings, form, read_presets(calibration), max_tokens=found.max_tokens,
                            overlap=found.config["window_overlap"], temperatures=temperatures,
                            isolated=bool(placement.options.get(_ISOLATE_OPTION, False)))  # fmt: skip
    return SequenceModel(facts, reader, encoder, readout, found.backbone_config["vocab_size"], plan.parameters * dtype.itemsize)


def _load_decoder(found: Vela2Package, facts: ModelFacts, requests: RequestReader, readings: VelaReadings, placement: Placement,
                  dtype: torch.dtype, progress: Callable[[int, int], None]) -> LoadedModel:  # fmt: skip
    tensors = found.tensors()
    config = found.backbone_config
    hidden = int(config["hidden_size"])
    tensors.check(head_shapes(hidden, found.config["head_dim"]), "head.")
    tensors.check({"set_bias": ()}, ignore=lambda name: name != "set_bias")
    stated = found.config.get("span_head") or {}
    tensors.check(span_shapes(hidden, int(stated.get("d", 256)), int(stated.get("slots", 64))), ROUTER_PREFIX)
    spans = {ROUTER: SpanHead(tensors.read(torch.float32, ROUTER_PREFIX))}
    if found.has_broad_head:
        broad = PackageTensors(found.folder, [BROAD_HEAD])
        shapes = broad.shapes(BROAD_PREFIX)
        broad.check(span_shapes(hidden, *(shapes.get(f"{name}.weight", (0,))[0] for name in ("K", "slot"))), BROAD_PREFIX)
        spans[BROAD] = SpanHead(broad.read(torch.float32, BROAD_PREFIX))
    backbone = load_backbone(config, tensors, "backbone.", dtype=dtype, device=placement.device, source="backbone_config", progress=progress)
    trunk = TransformersTrunk(backbone, max_tokens=found.max_tokens, share=placement.enable_shared_context)
    reader = BlockReader(requests, readings, found.calibration, read_presets(found.calibration), _span_form(found),
                         max_tokens=found.max_tokens, broad_loaded=found.has_broad_head)  # fmt: skip
    bias = tensors.read(torch.float32, names=["set_bias"])["set_bias"]
    return BlockModel(facts, reader, trunk, CandidateHead(tensors.read(torch.float32, "head.")), float(bias), spans)


def _span_form(found: Vela2Package) -> SpanForm:
    stated = found.config.get("span_layout") or {}
    form = SpanForm(int(stated.get("hybrid_rmax", 2048)), int(stated.get("window", 1800)), int(stated.get("stride", 1536)))
    if int(stated.get("window_above", form.repeat)) != form.repeat or not 1 <= form.stride <= form.window <= form.repeat:
        raise not_of_the_format("config.json", "span_layout whose windows begin where repeating ends", stated)
    return form
