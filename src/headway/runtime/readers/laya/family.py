"""The family `laya`: an encoder folder, a tokenizer folder, one weight file, and the settings of the head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final

import torch

from headway.artifacts.quantization_claim import claim_of_config
from headway.artifacts.tokenizer import tokenizer_at
from headway.errors import PackageError
from headway.models.checkpoint_tensors import refuse_missing, refuse_shapes, refuse_unexpected
from headway.models.encoders.load import load_planned_encoder
from headway.models.encoders.plan import EncoderPlan, plan_encoder
from headway.quantization.stored_format import stored_format
from headway.quantization.weight_reader import WeightReader
from headway.runtime.decoder.loading import DTYPES
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.decision_limits import decision_limits
from headway.runtime.readers.laya.fixture import VARIANTS, write_laya
from headway.runtime.readers.laya.head import MarkerHead, head_shapes
from headway.runtime.readers.laya.model import LayaModel
from headway.runtime.readers.laya.reader import LayaReader
from headway.runtime.readers.laya.sequence import LayaSequences
from headway.runtime.readers.laya.settings import KINDS, SETTINGS_FILES, LayaSettings, parse_settings
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.part_card import card_of_part

_ENCODER_CONFIG: Final = "encoder/config.json"
_WEIGHTS: Final = "model.safetensors"
_PREFIX: Final = "encoder."
_NO_WEIGHT: Final = "temperature"  # a copy of what the settings say
_ACT_HEAD: Final = "act_head."


class LayaFamily(ModelFamily):
    name: ClassVar[str] = "laya"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)
    option_names: ClassVar[frozenset[str]] = frozenset({"max_scan_tokens"})

    def detect(self, package: Package) -> bool:
        return package.has(_ENCODER_CONFIG) and any(package.has(name) for name in SETTINGS_FILES)

    def describe(self, package: Package) -> ModelSpec:
        settings, name = _settings(package)
        plan = _plan(package)
        _check_head(plan, settings)
        tokenizer = sorted(f"tokenizer/{path.name}" for path in (package.path / "tokenizer").iterdir() if path.is_file())
        return ModelSpec(
            self.surfaces, _parameters(plan), (name, _ENCODER_CONFIG, _WEIGHTS, *tokenizer),
            settings.max_tokens, dtypes=("float32", "bfloat16"), licence=package.licence, stored=stored_format(plan.card.tensors.values()),
        )  # fmt: skip

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        settings, _ = _settings(package)
        plan = _plan(package)
        _check_head(plan, settings)
        tokenizer = tokenizer_at(package.path / "tokenizer")
        encoder = load_planned_encoder(plan, DTYPES[placement.dtype], progress=progress)
        names = [name for name in plan.remaining if name != _NO_WEIGHT]
        with WeightReader(plan.card) as weights:
            head = MarkerHead({name: weights.tensor(name, torch.float32) for name in names}, settings.head_layers)
        max_scan_tokens = placement.options.get("max_scan_tokens")
        reader = LayaReader(LayaSequences(tokenizer, settings), settings.temperature, max_scan_tokens)
        limits = decision_limits(settings.max_tokens) | {
            "max_scan_tokens": reader.max_scan_tokens, "truncate_tokens": settings.max_tokens,
        }  # fmt: skip
        facts = ModelFacts(spec.parameters, placement.dtype, limits, question_types=tuple(sorted(KINDS)))
        vocabulary = int(plan.card.config["vocab_size"])
        return LayaModel(facts, reader, encoder, head, vocabulary, plan.parameters * encoder.dtype.itemsize)

    def fixture_variants(self) -> Sequence[str]:
        return tuple(VARIANTS)

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_laya(folder, variant, seed)


def _settings(package: Package) -> tuple[LayaSettings, str]:
    name = next(name for name in SETTINGS_FILES if package.has(name))
    return parse_settings(name, package.json(name) or {}), name


def _plan(package: Package) -> EncoderPlan:
    for name in (_WEIGHTS, "tokenizer/tokenizer.json"):
        if not package.has(name):
            raise PackageError(f"{package.path} lacks {name}", reason="missing_file", param=name, fix="Download the package again.")
    config = package.json(_ENCODER_CONFIG) or {}
    tensors = PackageTensors(package.path, [_WEIGHTS], claim_of_config(config, _ENCODER_CONFIG))
    return plan_encoder(card_of_part(package.reference, config, tensors.infos, [package.path / _WEIGHTS]), _PREFIX)


def _check_head(plan: EncoderPlan, settings: LayaSettings) -> None:
    """Raises ArtifactError: `missing_tensor`, `tensor_shape`, `unexpected_tensor`."""
    there = {name: plan.card.tensors[name].shape for name in plan.remaining if name != _NO_WEIGHT}
    acts = settings.actions if any(name.startswith(_ACT_HEAD) for name in there) else None
    wanted = head_shapes(plan.hidden_size, settings.head_layers, acts)
    refuse_missing(plan.card, [name for name in wanted if name not in there])
    refuse_shapes(plan.card, [(name, there[name], shape) for name, shape in wanted.items() if there[name] != shape])
    refuse_unexpected(plan.card, [name for name in there if name not in wanted])


def _parameters(plan: EncoderPlan) -> int:
    return sum(tensor.elements for name, tensor in plan.card.tensors.items() if name != _NO_WEIGHT)
