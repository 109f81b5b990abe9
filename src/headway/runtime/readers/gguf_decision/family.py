"""The family `gguf_decision`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from headway.artifacts.model_cards import card_of_path, gguf_of_folder
from headway.artifacts.tokenizer import load_tokenizer
from headway.errors import HeadwayError, PackageError
from headway.runtime.decisions.label_logits.model import LabelLogitsModel
from headway.runtime.decoder.loading import load_trunk
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.decision_limits import decision_limits
from headway.runtime.readers.gguf_decision.label_reader import GgufLabelReader
from headway.runtime.readers.gguf_decision.marker_model import describe_markers, load_markers
from headway.runtime.readers.gguf_decision.metadata import MARKER_KIND, decision_kind, read_decision_metadata

_UNSTATED_CONTEXT = 2048


class GgufDecisionFamily(ModelFamily):
    name: ClassVar[str] = "gguf_decision"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)
    option_names: ClassVar[frozenset[str]] = frozenset({"max_scan_tokens"})
    shares_context: ClassVar[bool] = True

    def detect(self, package: Package) -> bool:
        path = _gguf_file(package)
        return path is not None and decision_kind(path) is not None

    def describe(self, package: Package) -> ModelSpec:
        path = _file(package)
        found = read_decision_metadata(path)
        if found.kind == MARKER_KIND:
            return describe_markers(package, path, found)
        card = card_of_path(path, package.reference, revision=package.revision, licence=package.licence)
        files = tuple(sorted(file.name for file in card.files))
        return ModelSpec(
            self.surfaces, card.parameters, files, card.context_length or _UNSTATED_CONTEXT, ("float32", "bfloat16"), licence=card.licence
        )

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        path = _file(package)
        found = read_decision_metadata(path)
        if found.kind == MARKER_KIND:
            return load_markers(package, path, found, spec, placement, progress)
        card = card_of_path(path, package.reference, revision=package.revision, licence=package.licence)
        tokenizer = load_tokenizer(card)
        trunk = load_trunk(
            card, placement.dtype, share=placement.enable_shared_context, known_tokens=tokenizer.vocab_size, progress=progress
        )
        reader = GgufLabelReader(found, tokenizer, trunk.max_tokens)
        facts = ModelFacts(
            spec.parameters, placement.dtype, decision_limits(trunk.max_tokens), question_types=tuple(sorted(reader.question_types)),
            extra={"decision_kind": found.kind, "label_codes": len(reader.labels)},
        )  # fmt: skip
        return LabelLogitsModel(facts, reader, trunk, tokenizer, [label.token_id for label in reader.labels[:4]])


def _gguf_file(package: Package) -> Path | None:
    if not package.is_folder:
        return package.path if package.path.suffix == ".gguf" else None
    try:
        return gguf_of_folder(package.path)
    except (HeadwayError, OSError):
        return None


def _file(package: Package) -> Path:
    path = _gguf_file(package)
    if path is None:
        raise PackageError(f"{package.path} is no GGUF file and holds none", reason="invalid_package", param=str(package.path))
    return path
